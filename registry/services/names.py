"""Names and references that clients give: their form, and near misses when there is no such thing."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.core.exceptions import ValidationError

from registry.artifacts.findings import shown
from registry.errors import Fault, ValidationFailed
from registry.models.fields import validate_name

MAX_NEAR_MISSES = 3
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`name@number`; `number` is None when only a name was given (the newest is meant)."""

    name: str
    number: int | None

    def __str__(self) -> str:
        """As a client writes it."""
        return self.name if self.number is None else f"{self.name}@{self.number}"


def near_misses(name: str, known: Iterable[str]) -> str:
    """A sentence with the known names nearest to an unknown one, to be put behind a message; "" without any.

    >>> near_misses("scop", ["scope", "zebra"])
    " Did you mean 'scope'?"
    """
    close = difflib.get_close_matches(name, list(known), n=MAX_NEAR_MISSES, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(shown(item)) for item in close)}?" if close else ""


def find_name_fault(name: str, *, where: str) -> Fault | None:
    """The fault of a name that may stand in an address, a file name and a shell command; None when it is
    fine.

    Valid: `tickets`, `qwen2.5-7b`, `a`. Invalid: ``, `Tickets`, `a/b`, `-x`, `x.`, 97 characters.
    """
    try:
        validate_name(name)
    except ValidationError as error:
        return Fault(code="name-invalid", message=f"{shown(name)!r}: {error.messages[0]}", where=where)
    return None


def require_name(name: str, *, where: str = "/name") -> str:
    """The name, if it has the right form.

    Raises:
        ValidationFailed: it has not.
    """
    fault = find_name_fault(name, where=where)
    if fault is not None:
        raise ValidationFailed("name-invalid", faults=[fault])
    return name


def parse_reference(text: str, *, where: str, needs_number: bool = False) -> Reference:
    """Reads `name@number` or, unless `needs_number`, `name`.

    Raises:
        ValidationFailed: the text has neither form (code `reference-invalid`).
    """
    name, separator, number = text.partition("@")
    fault = find_name_fault(name, where=where)
    has_number = _NUMBER.fullmatch(number) is not None
    if fault is None and (has_number or not (separator or needs_number)):
        return Reference(name=name, number=int(number) if has_number else None)
    form = "name@number" if needs_number else "name or name@number"
    message = f"{shown(text)!r} is not of the form {form} (for example tickets@1)."
    raise ValidationFailed(
        "reference-invalid", faults=[Fault(code="reference-invalid", message=message, where=where)]
    )
