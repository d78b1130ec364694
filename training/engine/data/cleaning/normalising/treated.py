"""What a part of normalisation gives back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Treated:
    """What a part made of a text.

    Attributes:
        text: The new text.
        flags: Codes of what a person should look at, with the words meant, in the order of the text.
    """

    text: str
    flags: tuple[tuple[str, str], ...] = ()
