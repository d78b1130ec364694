"""Quarters of a year, in UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from registry.artifacts.findings import shown
from registry.errors import Fault
from training.errors import TrainingInvalid

_MONTHS = 3
_TEXT = re.compile(r"(20[0-9]{2})[Qq]([1-4])")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Quarter:
    """Three months; `number` is 1 to 4."""

    year: int
    number: int

    def __str__(self) -> str:
        """As people write it: 2026Q4."""
        return f"{self.year}Q{self.number}"

    @property
    def begins_at(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, _MONTHS * (self.number - 1) + 1, 1, tzinfo=UTC)

    @property
    def ends_at(self) -> datetime:
        """The first moment that is no more in it."""
        return self.following.begins_at

    @property
    def following(self) -> "Quarter":
        """The next one."""
        is_last = self.number == 4
        return Quarter(year=self.year + is_last, number=1 if is_last else self.number + 1)

    @property
    def preceding(self) -> "Quarter":
        """The one before."""
        is_first = self.number == 1
        return Quarter(year=self.year - is_first, number=4 if is_first else self.number - 1)


def quarter_of(moment: datetime) -> Quarter:
    """The quarter in which a moment lies in UTC, whatever its own time zone."""
    there = moment.astimezone(UTC)
    return Quarter(year=there.year, number=(there.month - 1) // _MONTHS + 1)


def parse_quarter(text: str) -> Quarter:
    """Reads `2026Q4`.

    Raises:
        TrainingInvalid: another text (code `quarter-invalid`).
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        message = f"{shown(text)!r} is no quarter; write one like 2026Q4."
        fault = Fault(code="quarter-invalid", message=message, where="quarter")
        raise TrainingInvalid("quarter-invalid", faults=[fault])
    return Quarter(year=int(found.group(1)), number=int(found.group(2)))
