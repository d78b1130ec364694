"""Field-level exact match after the normalisers that the suite declares (F5).

A field is named by its key, or by a dotted path into nested objects (``slots.city``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from unicodedata import normalize

from evaluation.engine.json_text import json_equal


class Missing(Enum):
    """The type of ``MISSING``: a key that is not there, which is not the same as null."""

    VALUE = "missing"


MISSING: Final = Missing.VALUE

_WIDTH_TABLE: Final = {0x3000: 0x20} | {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def _fold_width(text: str) -> str:
    """Fold full-width ASCII and the ideographic space; NFKC would also rewrite characters such as the
    circled 1.
    """
    return text.translate(_WIDTH_TABLE)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


NORMALISERS: Final[Mapping[str, Callable[[str], str]]] = {
    "strip": str.strip,
    "casefold": str.casefold,
    "collapse_whitespace": _collapse_whitespace,
    "fold_width": _fold_width,
    "nfc": lambda text: normalize("NFC", text),
}
"""What a suite may declare for a field, by name; applied in the declared order to every string inside the
value."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field of the answer is compared.

    Attributes:
        name: Key, or dotted path into nested objects.
        is_key: Whether the field is a key field, whose precision and recall matter (F5).
        normalisers: Names out of ``NORMALISERS``, in the order in which they are applied.
    """

    name: str
    is_key: bool
    normalisers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldResult:
    """The comparison of one field.

    Attributes:
        expected: Normalised reference value, or ``MISSING``.
        observed: Normalised value of the output, or ``MISSING``.
        is_correct: Whether both are the same JSON value, or both missing.
    """

    expected: Any
    observed: Any
    is_correct: bool

    def to_json(self) -> dict[str, Any]:
        """Return the row form; a missing value is null there, and the reason ``is_correct`` is kept."""
        return {
            "expected": None if self.expected is MISSING else self.expected,
            "observed": None if self.observed is MISSING else self.observed,
            "observed_missing": self.observed is MISSING,
            "correct": self.is_correct,
        }


def compare_fields(rules: Sequence[FieldRule], reference: Any, output: Any) -> dict[str, FieldResult]:
    """Compare every declared field.

    Args:
        rules: The suite's fields.
        reference: Parsed reference answer.
        output: Parsed output, or ``MISSING`` when it did not parse strictly: every field is then wrong.
    """
    return {rule.name: _compare_field(rule, reference, output) for rule in rules}


def field_score(results: Mapping[str, FieldResult]) -> float:
    """Return the fraction (0-1) of declared fields that match.

    Raises:
        ValueError: No fields.
    """
    if not results:
        raise ValueError("a score needs at least one declared field")
    return sum(result.is_correct for result in results.values()) / len(results)


def look_up(value: Any, name: str) -> Any:
    """Return the value under a key or a dotted path, or ``MISSING``.

    A key that itself holds dots wins over the path.
    """
    if not isinstance(value, dict):
        return MISSING
    if name in value:
        return value[name]
    head, dot, rest = name.partition(".")
    return look_up(value[head], rest) if dot and head in value else MISSING


def normalise(value: Any, normalisers: Sequence[str]) -> Any:
    """Apply the named normalisers to every string inside a JSON value (object keys are left as they are).

    Raises:
        KeyError: A name is not in ``NORMALISERS``.
    """
    if isinstance(value, str):
        for name in normalisers:
            value = NORMALISERS[name](value)
        return value
    if isinstance(value, list):
        return [normalise(item, normalisers) for item in value]
    if isinstance(value, dict):
        return {key: normalise(item, normalisers) for key, item in value.items()}
    return value


def _compare_field(rule: FieldRule, reference: Any, output: Any) -> FieldResult:
    expected = normalise(look_up(reference, rule.name), rule.normalisers)
    if output is MISSING:
        return FieldResult(expected, MISSING, is_correct=False)
    observed = normalise(look_up(output, rule.name), rule.normalisers)
    if expected is MISSING or observed is MISSING:
        return FieldResult(expected, observed, is_correct=expected is observed)
    return FieldResult(expected, observed, is_correct=json_equal(expected, observed))
