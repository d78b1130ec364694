"""The forms in which one field's values are written, counted over a dataset."""

from collections.abc import Iterator
from typing import Any

from registry.artifacts.findings import Severity, shown
from training.engine.data.checks.answer_reading import count_words
from training.engine.data.checks.check import DataFinding
from training.engine.data.checks.id_tally import IdTally, KeyedTally, merge_ids
from training.engine.data.checks.text_style import ends_like_a_sentence
from training.engine.data.checks.value_forms import fold_spelling, read_amount_form, read_date_form

_MAX_SPELLINGS = 300
"""Different values whose spellings are compared; a field with more is free text."""
_MAX_FORMS = 50
_MAX_LABEL_CHARACTERS = 60
_MAX_COPY_CHARACTERS = 2000
_MOSTLY = 0.8
"""From this part of its values on, a field is one of dates, amounts or sentences."""
_COPIED = 0.9
"""From this part on, the values are quotations, and their form is that of the input."""
_MIN_SENTENCE_WORDS = 5
_COPIED_REMEDY = " The values stand word for word in their inputs, so this may be right."


class FieldForms:
    """Forms of the values at one path."""

    def __init__(self, path: str) -> None:
        """Start empty."""
        self._path = path
        self._types: KeyedTally[str] = KeyedTally(_MAX_FORMS)
        self._spellings: dict[str, KeyedTally[str]] | None = {}
        self._dates: KeyedTally[str] = KeyedTally(_MAX_FORMS)
        self._amounts: KeyedTally[tuple[str, str]] = KeyedTally(_MAX_FORMS)
        self._ends: KeyedTally[bool] = KeyedTally(2)
        self._num_texts = 0
        self._num_copied = 0

    def add(self, value: Any, source: str, example_id: str) -> None:
        """Count one value.

        Args:
            value: Text, number, boolean, or None for null.
            source: The input's text.
            example_id: Of the example.
        """
        self._types.add(_name_type(value), example_id)
        if not isinstance(value, str) or not value.strip():
            return
        self._num_texts += 1
        self._num_copied += value[:_MAX_COPY_CHARACTERS] in source
        self._count_spelling(value, example_id)
        date = read_date_form(value)
        if date is not None:
            self._dates.add(date, example_id)
            return
        amount = read_amount_form(value)
        if amount is not None:
            self._amounts.add(amount, example_id)
        elif count_words(value) >= _MIN_SENTENCE_WORDS:
            self._ends.add(ends_like_a_sentence(value), example_id)

    def findings(self) -> Iterator[DataFinding]:
        """Yield where the forms differ; ids are of the rarer forms."""
        yield from self._judge_types()
        yield from self._judge_spellings()
        yield from self._judge_dates()
        yield from self._judge_amounts()
        yield from self._judge_ends()

    def _count_spelling(self, value: str, example_id: str) -> None:
        if self._spellings is None or len(value) > _MAX_LABEL_CHARACTERS:
            return
        self._spellings.setdefault(fold_spelling(value), KeyedTally(_MAX_FORMS)).add(value, example_id)
        if len(self._spellings) > _MAX_SPELLINGS:
            self._spellings = None

    def _judge_types(self) -> Iterator[DataFinding]:
        types = [(name, tally) for name, tally in self._types.most_common() if name != "null"]
        if len(types) > 1:
            listed = ", ".join(f"{name} ({tally.count})" for name, tally in types)
            yield self._make(
                "value-types-differ",
                f"holds values of several types: {listed}",
                "Write the field with one type; null may stand for none.",
                [tally for _, tally in types[1:]],
                is_form=False,
            )

    def _judge_spellings(self) -> Iterator[DataFinding]:
        varied = [tally.most_common() for tally in (self._spellings or {}).values() if tally.num_keys > 1]
        if not varied:
            return
        varied.sort(key=lambda spellings: -sum(tally.count for _, tally in spellings[1:]))
        listed = "; ".join(
            " / ".join(f"{shown(text)} ({tally.count})" for text, tally in spellings[:4])
            for spellings in varied[:3]
        )
        yield self._make(
            "value-spellings-differ",
            f"has {len(varied)} values in several spellings: {listed}",
            "Write each value in one way: the model learns all of them.",
            [tally for spellings in varied for _, tally in spellings[1:]],
        )

    def _judge_dates(self) -> Iterator[DataFinding]:
        forms = self._dates.most_common()
        if len(forms) > 1 and self._dates.total >= _MOSTLY * self._num_texts:
            listed = ", ".join(f"{form} ({tally.count})" for form, tally in forms[:5])
            yield self._make(
                "date-formats-differ",
                f"writes dates in {len(forms)} forms: {listed}",
                "Write all dates in one form, best as 2024-01-05.",
                [tally for _, tally in forms[1:]],
            )

    def _judge_amounts(self) -> Iterator[DataFinding]:
        if self._amounts.total < _MOSTLY * self._num_texts:
            return
        forms = self._amounts.most_common()
        units = {unit for (unit, _), _ in forms}
        listed = ", ".join(f"{shown(form)} ({tally.count})" for (_, form), tally in forms[:6])
        rarer = [tally for _, tally in forms[1:]]
        if len(forms) > len(units) or ("" in units and len(units) > 1):
            yield self._make(
                "units-differ",
                f"writes its unit in several ways: {listed}",
                "Write the number and its unit in one way, or the number alone as a JSON number.",
                rarer,
            )
        elif len(units) > 1:
            yield self._make(
                "several-units",
                f"has {len(units)} units: {listed}",
                "Convert to one unit, unless the unit is part of the answer.",
                rarer,
                severity=Severity.INFO,
            )

    def _judge_ends(self) -> Iterator[DataFinding]:
        with_mark, without = self._ends.get(True), self._ends.get(False)
        if not with_mark.count or not without.count or self._ends.total < _MOSTLY * self._num_texts:
            return
        rarer = min(with_mark, without, key=lambda tally: tally.count)
        yield self._make(
            "final-mark-differs",
            f"ends with a full stop {with_mark.count} times and without one {without.count} times",
            "End the sentences of a field in one way.",
            [rarer],
        )

    def _make(
        self,
        code: str,
        message: str,
        remedy: str,
        tallies: list[IdTally],
        *,
        severity: Severity = Severity.WARNING,
        is_form: bool = True,
    ) -> DataFinding:
        is_copied = is_form and self._num_copied >= _COPIED * self._num_texts
        return DataFinding(
            code=code,
            severity=Severity.INFO if is_copied else severity,
            message=f"{shown(self._path)} {message}",
            where=shown(self._path),
            remedy=remedy + (_COPIED_REMEDY if is_copied else ""),
            num_examples=sum(tally.count for tally in tallies),
            example_ids=merge_ids(tallies),
            source="MISSION C2",
        )


def _name_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"
