"""The check ``label_balance``: how the values of each label are spread (MISSION C7).

The field guide: a field in which one value holds 80 % is the one that the model gets wrong, because it
answers that value always.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from registry.artifacts.findings import Severity, shown
from training.engine.data.checks.answer_reading import MAX_LEAVES, iterate_leaves, read_json_answer
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.id_tally import IdTally, KeyedTally, merge_ids
from training.engine.data.examples import Example
from training.engine.settings_rules import count, number

MAX_LABELS = 50
"""A field with more different values is no label."""
_MIN_REPEATS = 2
"""A label's values come this often on average, or it is free text in a small dataset."""
_MIN_EXAMPLES = 20
_MAX_FIELDS = 200
_MAX_LABEL_CHARACTERS = 60
_MAX_LISTED_VALUES = 5
_RARE_REMEDY = "Collect more of them, or merge them with a neighbouring value."


class _Field:
    """The values of one field, as long as they may be labels."""

    def __init__(self) -> None:
        self.values: KeyedTally[str] = KeyedTally(MAX_LABELS + 1)
        self.has_long_values = False

    def add(self, value: str, example_id: str) -> None:
        if len(value) > _MAX_LABEL_CHARACTERS:
            self.has_long_values = True
        elif self.values.num_other == 0:
            self.values.add(value, example_id)

    @property
    def is_label(self) -> bool:
        if self.has_long_values or not self.values.num_keys or self.values.num_keys > MAX_LABELS:
            return False
        return self.values.total >= max(_MIN_EXAMPLES, _MIN_REPEATS * self.values.num_keys)


class LabelBalance:
    """The check at work."""

    def __init__(self, max_fraction: float, min_count: int) -> None:
        """Start with nothing counted; see the parameters of the kind."""
        self._max_fraction = max_fraction
        self._min_count = min_count
        self._fields: dict[str, _Field] = {}

    def add(self, example: Example) -> None:
        """Count the values of one example; general instruction data has no labels of the task."""
        if example.is_general:
            return
        for path, value in _iterate_labels(example):
            field = self._fields.get(path)
            if field is None:
                if len(self._fields) >= _MAX_FIELDS:
                    continue
                field = self._fields[path] = _Field()
            field.add(value, example.example_id)

    def findings(self) -> tuple[DataFinding, ...]:
        """Return constant and imbalanced fields, then rare values."""
        found = [
            finding
            for path, field in self._fields.items()
            if field.is_label
            for finding in self._judge(path, field.values.most_common())
        ]
        return tuple(sorted(found, key=lambda item: (item.severity != Severity.WARNING, -item.num_examples)))

    def _judge(self, path: str, values: Sequence[tuple[str, IdTally]]) -> Iterator[DataFinding]:
        total = sum(tally.count for _, tally in values)
        top_value, top = values[0]
        is_answer = path.startswith("answer")
        where = shown(path)
        if len(values) == 1:
            yield DataFinding(
                code="constant-field",
                # One channel in all tags is how a dataset was collected; one value in all answers teaches
                # nothing.
                severity=Severity.WARNING if is_answer else Severity.INFO,
                message=f"{where} is {shown(top_value)} in all of {total} examples",
                where=where,
                remedy="Take the field out, or collect examples with other values." if is_answer else "",
                num_examples=total,
                example_ids=tuple(top.ids),
                source="MISSION C7",
            )
            return
        if top.count > self._max_fraction * total:
            others = [tally for _, tally in values[1:]]
            yield DataFinding(
                code="imbalanced-field",
                severity=Severity.WARNING if is_answer else Severity.INFO,
                message=f"{where} is {shown(top_value)} in {top.count} of {total} examples "
                f"({top.count / total:.0%}); {_describe_entropy(values)}",
                where=where,
                remedy=f"Collect examples of the other {len(others)} values or repeat them with a higher "
                "weight, "
                f"or merge values; else the model answers {shown(top_value)} always. Ids are of the others.",
                num_examples=total - top.count,
                example_ids=merge_ids(others),
                source="MISSION C7",
            )
        rare = [(value, tally) for value, tally in values if tally.count < self._min_count]
        # Where most values are rare the vocabulary is open, and rare values are in the nature of the field.
        if is_answer and 0 < len(rare) <= len(values) / 2:
            listed = ", ".join(
                f"{shown(value)} ({tally.count})" for value, tally in rare[:_MAX_LISTED_VALUES]
            )
            more = f" and {len(rare) - _MAX_LISTED_VALUES} more" if len(rare) > _MAX_LISTED_VALUES else ""
            yield DataFinding(
                code="rare-values",
                severity=Severity.INFO,
                message=f"{len(rare)} values of {where} come fewer than {self._min_count} times: "
                f"{listed}{more}; "
                f"{_describe_entropy(values)}",
                where=where,
                remedy=_RARE_REMEDY,
                num_examples=sum(tally.count for _, tally in rare),
                example_ids=merge_ids(tally for _, tally in rare),
                source="MISSION C7",
            )


def entropy_bits(counts: Sequence[int]) -> float:
    """Return the Shannon entropy of counts in bits: 0 for one value, log2(n) for n equally frequent ones."""
    total = sum(counts)
    return -sum(item / total * math.log2(item / total) for item in counts if item)


def _describe_entropy(values: Sequence[tuple[str, IdTally]]) -> str:
    bits = entropy_bits([tally.count for _, tally in values])
    return f"entropy {bits:.2f} of at most {math.log2(len(values)):.2f} bits over {len(values)} values"


def _iterate_labels(example: Example) -> Iterator[tuple[str, str]]:
    answer = example.answer
    if answer is not None:
        parsed = read_json_answer(answer)
        if parsed is None:
            yield "answer", answer.strip()
        else:
            for number, (path, value) in enumerate(iterate_leaves(parsed.value)):
                if number >= MAX_LEAVES:
                    break
                yield path, value if isinstance(value, str) else json.dumps(value)
    for name, tag in example.tags.items():
        if isinstance(tag, str):
            yield f"tags/{name}", tag
    category = example.fields.get("category")
    if isinstance(category, str):
        yield "category", category


def _build(parameters: Mapping[str, Any]) -> Check:
    return LabelBalance(parameters["max_fraction"], parameters["min_count"])


KIND = CheckKind(
    name="label_balance",
    version=1,
    summary="Finds label fields that one value rules, fields that never change, and rare values.",
    source="MISSION C7",
    rules={"max_fraction": number(0, 1, low_open=True), "min_count": count(1)},
    defaults={"max_fraction": 0.8, "min_count": 5},
    build=_build,
)
