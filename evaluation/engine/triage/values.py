"""The values that an answer got wrong, and where the right ones could have come from.

What the model was told (prompt and input), the labels of the task (values of other references, enums of the
schema), a calculation from the input, or nowhere: that is what tells a fact from a calculation from a label.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evaluation.engine.json_text import json_equal
from evaluation.engine.scoring.fields import MISSING, NORMALISERS
from evaluation.engine.scoring.regression import ContainsRule, ExactRule
from evaluation.engine.triage.derivation import Derivation, derive_date, derive_number
from evaluation.engine.triage.quantities import Quantities, read_quantities
from evaluation.engine.triage.samples import Sample
from evaluation.engine.triage.wordings import normal, stands_in

ANSWER: Final = "answer"
"""Path of the value of an answer that is a text."""

MAX_VALUE_CHARACTERS: Final = 60
"""A longer text was composed; it says nothing about where it comes from."""

MAX_WRONG_VALUES: Final = 20

CLOSED_FRACTION: Final = 0.8
"""A field of numbers is a choice among labels only when so many samples share their number with another one:
two equal totals among twenty are a coincidence.
"""

_NORMALISERS: Final = ("nfc", "fold_width", "collapse_whitespace", "strip", "casefold")


class Origin(StrEnum):
    """Where a right value could have come from."""

    INPUT = "input"
    LABEL = "label"
    DERIVED = "derived"
    NOWHERE = "nowhere"
    COMPOSED = "composed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongValue:
    """A value that an answer got wrong.

    Attributes:
        path: Dotted path in a JSON answer, ``answer`` for a text, ``point 2`` for a required point.
        expected: The right value, a JSON scalar.
        observed: What the answer has there; ``MISSING`` when nothing.
        origin: Where the right value could have come from.
        derivation: The relation when it is derived.
        is_quantity: Whether the right value is a number, a date or a time, or a text that hangs on one.
    """

    path: str
    expected: Any
    observed: Any
    origin: Origin
    derivation: Derivation | None
    is_quantity: bool

    def to_json(self) -> dict[str, Any]:
        """Return the form of evidence; a missing value is null beside ``is_missing``."""
        is_missing = self.observed is MISSING
        return {
            "path": self.path,
            "expected": self.expected,
            "observed": None if is_missing else self.observed,
            "is_missing": is_missing,
            "origin": self.origin.value,
            "derivation": None if self.derivation is None else self.derivation.text,
        }


@dataclass(frozen=True, slots=True)
class LabelSpace:
    """The values that references of other samples have under the same path, and the schema's enums.

    Attributes:
        num_uses: Path (list positions left out) to normalised value to the number of samples that have it.
        enums: Path to normalised enum values.
    """

    num_uses: Mapping[str, Mapping[str, int]]
    enums: Mapping[str, frozenset[str]]

    def holds(self, path: str, value: Any, *, num_own_uses: int = 1) -> bool:
        """Say whether a value is a label: an enum, or in more samples than its own ``num_own_uses``."""
        general, text = general_path(path), label_text(value)
        if text in self.enums.get(general, frozenset()):
            return True
        return self.num_uses.get(general, {}).get(text, 0) > num_own_uses

    def is_closed(self, path: str) -> bool:
        """Say whether nearly all samples (``CLOSED_FRACTION``) share their value with another one."""
        general = general_path(path)
        if general in self.enums:
            return True
        uses = self.num_uses.get(general, {})
        num_shared = sum(number for number in uses.values() if number >= 2)
        return bool(uses) and num_shared >= CLOSED_FRACTION * sum(uses.values())

    def labels(self, path: str) -> frozenset[str]:
        """Return the labels of a path: its enum, else the values of at least two samples."""
        general = general_path(path)
        repeated = {text for text, uses in self.num_uses.get(general, {}).items() if uses >= 2}
        return self.enums.get(general) or frozenset(repeated)


def build_label_space(samples: Sequence[Sample], schema: Mapping[str, Any] | None) -> LabelSpace:
    """Collect the labels of a task from all references and the schema."""
    uses: dict[str, Counter[str]] = {}
    for sample in samples:
        seen = {(general_path(path), label_text(value)) for path, value in expected_values(sample)}
        for path, text in seen:
            uses.setdefault(path, Counter())[text] += 1
    return LabelSpace(uses, {} if schema is None else dict(_enums(schema, "")))


def general_path(path: str) -> str:
    """Return a path without the positions in lists: ``items.3.kind`` is ``items.*.kind``."""
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def label_text(value: Any) -> str:
    """Return a scalar as a text for comparing labels."""
    return normal(value) if isinstance(value, str) else repr(value)


def expected_values(sample: Sample) -> list[tuple[str, Any]]:
    """Return the (path, scalar) pairs that a right answer has; empty when no rule names any."""
    if sample.is_structured:
        return list(flatten(sample.expected))
    if isinstance(sample.scoring, ExactRule):
        return [(ANSWER, sample.scoring.answer)]
    if isinstance(sample.scoring, ContainsRule):
        return [(f"value {number}", value) for number, value in enumerate(sample.scoring.values, start=1)]
    if sample.checks.required_points:
        points = enumerate(sample.checks.required_points, start=1)
        return [(f"point {number}", point) for number, point in points]
    return [(ANSWER, sample.reference.strip())] if sample.is_label else []


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a JSON value with their dotted paths; an empty object or list counts as one."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from flatten(item, f"{prefix}.{number}" if prefix else str(number))
    else:
        yield prefix or ANSWER, value


def same_value(left: Any, right: Any) -> bool:
    """Say whether two scalars are the same value: JSON equality after the usual normalisation of texts."""
    return json_equal(_normalised(left), _normalised(right))


def same_content(left: Any, right: Any) -> bool:
    """Say whether two scalars mean the same, whatever their JSON type or spelling: ``"12.0"`` and ``12``."""
    if left is MISSING or right is MISSING:
        return False
    if same_value(left, right):
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return str(left).casefold() == str(right).casefold()
    if normal(str(left)) == normal(str(right)):
        return True
    first, second = read_quantities(str(left)), read_quantities(str(right))
    is_plain = all(not isinstance(value, str) or _is_bare_quantity(value) for value in (left, right))
    return is_plain and not first.is_empty and first == second


def find_wrong_values(
    sample: Sample, observed: Mapping[str, Any], told: str, space: LabelSpace
) -> tuple[WrongValue, ...]:
    """Compare the values of an answer with the right ones and say where those could have come from.

    Args:
        sample: The sample.
        observed: Path to what the answer has there; paths that it lacks are missing.
        told: Everything that the model read.
        space: The task's labels.
    """
    given, whole = read_quantities(sample.input_text), read_quantities(told)
    wrong = []
    for path, expected in expected_values(sample):
        found = observed.get(path, MISSING)
        if same_content(found, expected):
            continue
        wrong.append(_explain(path, expected, found, told, given, whole, space))
    return tuple(wrong[:MAX_WRONG_VALUES])


def find_extra_items(expected: Any, observed: Any, prefix: str = "") -> list[WrongValue]:
    """Return the lists of an answer that have more items than the reference's."""
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        return [
            found
            for key in expected
            if key in observed
            for found in find_extra_items(
                expected[key], observed[key], f"{prefix}.{key}" if prefix else str(key)
            )
        ]
    if not isinstance(expected, list) or not isinstance(observed, list) or len(observed) <= len(expected):
        return []
    return [
        WrongValue(
            path=f"{prefix or ANSWER} (number of items)",
            expected=len(expected),
            observed=len(observed),
            origin=Origin.COMPOSED,
            derivation=None,
            is_quantity=False,
        )
    ]


def _explain(
    path: str,
    expected: Any,
    observed: Any,
    told: str,
    given: Quantities,
    whole: Quantities,
    space: LabelSpace,
) -> WrongValue:
    wanted = _quantities_of(expected)
    is_quantity = not wanted.is_empty
    derivation = None
    if isinstance(expected, bool) or expected is None or isinstance(expected, dict | list):
        origin = Origin.LABEL
    elif space.holds(path, expected) and (not is_quantity or space.is_closed(path)):
        # Before the input: a prompt that lists the labels tells all of them.
        origin = Origin.LABEL
    elif _stands_in_input(expected, wanted, told, whole):
        origin = Origin.INPUT
    elif is_quantity and (derivation := _derive(wanted, given, whole)) is not None:
        origin = Origin.DERIVED
    elif isinstance(expected, str) and len(expected) > MAX_VALUE_CHARACTERS:
        origin = Origin.COMPOSED
    else:
        origin = Origin.NOWHERE
    return WrongValue(
        path=path,
        expected=expected,
        observed=observed,
        origin=origin,
        derivation=derivation,
        is_quantity=is_quantity,
    )


def _quantities_of(value: Any) -> Quantities:
    if isinstance(value, bool) or value is None:
        return Quantities((), (), ())
    if isinstance(value, int | float):
        return Quantities((float(value),), (), ())
    return read_quantities(str(value))


def _stands_in_input(expected: Any, wanted: Quantities, told: str, whole: Quantities) -> bool:
    if isinstance(expected, str) and stands_in(expected, told):
        return True
    if wanted.is_empty or (isinstance(expected, str) and not _is_bare_quantity(expected)):
        return False
    return (
        set(wanted.numbers) <= set(whole.numbers)
        and set(wanted.dates) <= set(whole.dates)
        and set(wanted.minutes) <= set(whole.minutes)
    )


def _is_bare_quantity(text: str) -> bool:
    """Whether hardly more than a quantity and its unit stands in a text."""
    letters = sum(character.isalpha() for character in NORMALISERS["fold_width"](text))
    return not read_quantities(text).is_empty and letters <= 8


def _derive(wanted: Quantities, given: Quantities, whole: Quantities) -> Derivation | None:
    """The relation that gives what the input does not say; None unless every such quantity has one."""
    source = Quantities(
        tuple(dict.fromkeys((*given.numbers, *whole.numbers))),
        tuple(dict.fromkeys((*given.dates, *whole.dates))),
        tuple(dict.fromkeys((*given.minutes, *whole.minutes))),
        tuple(dict.fromkeys((*given.percents, *whole.percents))),
    )
    found = [derive_number(number, source) for number in wanted.numbers if number not in source.numbers]
    found += [derive_date(day, source) for day in wanted.dates if day not in source.dates]
    missing_times: set[int] = set(wanted.minutes) - set(source.minutes)
    if not found or missing_times or any(item is None for item in found):
        return None
    relations = [item for item in found if item is not None]
    return Derivation(
        text="; ".join(item.text for item in relations),
        chance_fraction=max(item.chance_fraction for item in relations),
    )


def _normalised(value: Any) -> Any:
    if isinstance(value, str):
        for name in _NORMALISERS:
            value = NORMALISERS[name](value)
    return value


def _enums(schema: Any, prefix: str, depth: int = 0) -> Iterator[tuple[str, frozenset[str]]]:
    if not isinstance(schema, Mapping) or depth > 20:
        return
    values = schema.get("enum")
    if isinstance(values, list):
        yield prefix or ANSWER, frozenset(label_text(value) for value in values)
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        yield from _enums(part, f"{prefix}.{name}" if prefix else str(name), depth + 1)
    if isinstance(schema.get("items"), Mapping):
        yield from _enums(schema["items"], f"{prefix}.*" if prefix else "*", depth + 1)
