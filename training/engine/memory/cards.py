"""Cards as people write them: "24GB", "80GB x 8".

1 GB is 10^9 bytes, as on the card's label. A card holds a little more than that (24 GB are mostly 24 GiB);
the rest is left to its driver.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.errors import Fault

BYTES_PER_GB: Final = 10**9
BYTES_PER_UNIT: Final = {"": BYTES_PER_GB, "g": BYTES_PER_GB, "gb": BYTES_PER_GB, "gib": 2**30}
MIN_CARD_BYTES: Final = 10**9
MAX_CARD_BYTES: Final = 10**13
MAX_CARDS: Final = 10_000
"""Cards of one kind that share a training."""
MAX_KINDS: Final = 8
MAX_TEXT_CHARACTERS: Final = 40
_REMEDY: Final = 'Write its memory and, for several of the same, their number: "24GB" or "80GB x 8".'
_SIZE: Final = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)\s*(gib|gb|g|)", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,5}", re.ASCII)
_TIMES: Final = re.compile(r"[x\u00d7*]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One kind of card.

    Attributes:
        memory_bytes: Of one card.
        num_cards: How many of them share the training, at least 1.
    """

    memory_bytes: int
    num_cards: int = 1

    @property
    def label(self) -> str:
        """As it is written: "24 GB", "80 GB x 8"."""
        size = f"{self.memory_bytes / BYTES_PER_GB:.5g} GB"
        return size if self.num_cards == 1 else f"{size} x {self.num_cards}"


def parse_card(text: str) -> Card:
    """Read one card; spaces and case do not matter, and a number without a unit is in GB.

    Raises:
        ValueError: It cannot be read, or is below 1 GB or above 10,000 GB, or there are 0 cards or more than
            10,000; the message says which.
    """
    plain = text.strip().lower()
    parts = [part.strip() for part in _TIMES.split(plain)] if len(plain) <= MAX_TEXT_CHARACTERS else []
    if len(parts) == 2 and _NUMBER.fullmatch(parts[0]):
        # "8 x 80GB"; of two bare numbers nobody can say which is which.
        parts = parts[::-1] if not _NUMBER.fullmatch(parts[1]) else []
    size = _SIZE.fullmatch(parts[0]) if 1 <= len(parts) <= 2 else None
    number = _NUMBER.fullmatch(parts[1]) if len(parts) == 2 else None
    if size is None or (len(parts) == 2 and number is None):
        raise ValueError("is no card")
    memory_bytes = round(float(size[1]) * BYTES_PER_UNIT[size[2]])
    if not MIN_CARD_BYTES <= memory_bytes <= MAX_CARD_BYTES:
        raise ValueError("has a memory below 1 GB or above 10,000 GB")
    num_cards = int(number[0]) if number else 1
    if not 1 <= num_cards <= MAX_CARDS:
        raise ValueError("has a number of cards below 1 or above 10,000")
    return Card(memory_bytes=memory_bytes, num_cards=num_cards)


def read_cards(texts: Iterable[Any], faults: list[Fault], *, where: str = "cards") -> tuple[Card, ...]:
    """Read cards; the same one twice is one.

    Args:
        texts: As people write them.
        faults: Takes ``card-unreadable`` for each that cannot be read, and ``too-many-cards``.
        where: Place of the list, for the faults.
    """
    listed = list(texts)
    if len(listed) > MAX_KINDS:
        message = f"names {len(listed)} kinds of cards; at most {MAX_KINDS} are compared"
        faults.append(Fault(code="too-many-cards", message=message, where=where))
        return ()
    cards: dict[Card, None] = {}
    for index, text in enumerate(listed):
        try:
            if not isinstance(text, str):
                raise ValueError("is no text")
            cards[parse_card(text)] = None
        except ValueError as error:
            message = f"{shown(repr(text))} {error}. {_REMEDY}"
            fault = Fault(code="card-unreadable", message=message, where=f"{where}[{index}]", remedy=_REMEDY)
            faults.append(fault)
    return tuple(cards)
