"""The check ``uniformity``: whether the answers of a task are written alike (MISSION C2).

"The model imitates the inconsistencies of the data faithfully" (field guide, chapter 3). What is compared:
JSON or text, keys and their order, types, spellings, dates, units, widths of punctuation, quotes, lists,
final marks.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from registry.artifacts.findings import Severity, shown, shown_list
from training.engine.data.checks.answer_reading import (
    MAX_LEAVES,
    JsonAnswer,
    count_words,
    has_cjk,
    iterate_leaves,
    iterate_objects,
    read_json_answer,
)
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.field_forms import FieldForms
from training.engine.data.checks.id_tally import IdTally, KeyedTally, merge_ids
from training.engine.data.checks.text_style import (
    ends_like_a_sentence,
    has_full_width_letters,
    is_list,
    read_mark_widths,
    read_quotes,
)
from training.engine.data.examples import Example
from training.engine.settings_rules import count, number

_MAX_PATHS = 200
_MAX_ORDERS = 500
_MAX_KEYS, _MAX_KEY_CHARACTERS = 100, 60
_MIN_DOMINANT_FRACTION = 0.5
"""Below this no key set is the rule, and keys are optional by design."""
_MIN_WORDS = 5
"""Shorter answers are labels, which have no full stop."""
_MAX_LISTED_KEYS = 5
_MIN_STYLE_FRACTION = 0.1


class _ObjectKeys:
    """Keys of the objects at one path, in their order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._orders: KeyedTally[tuple[str, ...]] = KeyedTally(_MAX_ORDERS)

    def add(self, keys: tuple[str, ...], example_id: str) -> None:
        self._orders.add(keys, example_id)

    def findings(self) -> Iterator[DataFinding]:
        yield from self._judge_sets()
        yield from self._judge_order()

    def _judge_sets(self) -> Iterator[DataFinding]:
        sets: dict[frozenset[str], list[IdTally]] = {}
        for keys, tally in self._orders.most_common():
            sets.setdefault(frozenset(keys), []).append(tally)
        if len(sets) < 2:
            return
        counts = {keys: sum(tally.count for tally in tallies) for keys, tallies in sets.items()}
        dominant = max(counts, key=lambda keys: counts[keys])
        fraction = counts[dominant] / self._orders.total
        others = [tally for keys, tallies in sets.items() if keys != dominant for tally in tallies]
        missing = _count_keys((dominant - keys, counts[keys]) for keys in counts)
        extra = _count_keys((keys - dominant, counts[keys]) for keys in counts)
        is_rule = fraction >= _MIN_DOMINANT_FRACTION
        described = f"missing: {missing or 'none'}; besides: {extra or 'none'}"
        yield DataFinding(
            code="keys-differ" if is_rule else "keys-optional",
            severity=Severity.WARNING if is_rule else Severity.INFO,
            message=f"{shown(self._path)} has the same keys in {fraction:.0%} of {self._orders.total} cases; "
            f"of the others, {described}"
            if is_rule
            else f"{shown(self._path)} has {len(sets)} sets of keys, the most frequent in {fraction:.0%}",
            where=shown(self._path),
            remedy="Write every key in every answer, with null where there is no value."
            if is_rule
            else "Right when keys are left out on purpose; else write every key, with null for none.",
            num_examples=self._orders.total - counts[dominant],
            example_ids=merge_ids(others),
            source="MISSION C2",
        )

    def _judge_order(self) -> Iterator[DataFinding]:
        sets: dict[frozenset[str], list[tuple[tuple[str, ...], IdTally]]] = {}
        for keys, tally in self._orders.most_common():
            sets.setdefault(frozenset(keys), []).append((keys, tally))
        # The most frequent order of each set of keys stands first.
        rarer = [tally for orders in sets.values() for _, tally in orders[1:]]
        if not rarer:
            return
        num_rarer = sum(tally.count for tally in rarer)
        varied = max(sets.values(), key=lambda orders: sum(tally.count for _, tally in orders[1:]))
        yield DataFinding(
            code="field-order-differs",
            severity=Severity.WARNING,
            message=f"{shown(self._path)} names its keys in the usual order in "
            f"{1 - num_rarer / self._orders.total:.1%} of {self._orders.total} cases; "
            f"both {shown_list(varied[0][0])} and {shown_list(varied[1][0])}",
            where=shown(self._path),
            remedy="Write the keys in one order (the step canonical_json does it).",
            num_examples=num_rarer,
            example_ids=merge_ids(rarer),
            source="MISSION C2",
        )


class Uniformity:
    """The check at work."""

    def __init__(self, min_examples: int, min_rare_fraction: float) -> None:
        """Start with nothing counted; see the parameters of the kind."""
        self._min_examples = min_examples
        self._min_rare_fraction = min_rare_fraction
        self._num_answers = 0
        self._formats: KeyedTally[str] = KeyedTally(2)
        self._repeated_keys = IdTally()
        self._objects: dict[str, _ObjectKeys] = {}
        self._fields: dict[str, FieldForms] = {}
        self._widths: KeyedTally[str] = KeyedTally(3)
        self._letters: KeyedTally[str] = KeyedTally(2)
        self._quotes: KeyedTally[str] = KeyedTally(3)
        self._shapes: KeyedTally[str] = KeyedTally(2)
        self._ends: KeyedTally[str] = KeyedTally(2)

    def add(self, example: Example) -> None:
        """Look at one answer; general instruction data belongs to no task and is passed over."""
        answer = (example.answer or "").strip()
        if example.is_general or not answer:
            return
        self._num_answers += 1
        parsed = read_json_answer(answer)
        self._formats.add("text" if parsed is None else "JSON", example.example_id)
        if parsed is None:
            self._add_text(answer, example.example_id)
        else:
            self._add_json(parsed, example)

    def findings(self) -> tuple[DataFinding, ...]:
        """Return what differs, warnings first, then by the number of examples."""
        if self._num_answers < self._min_examples:
            return ()
        found = [
            *self._judge_formats(),
            *(finding for keys in self._objects.values() for finding in keys.findings()),
            *(finding for forms in self._fields.values() for finding in forms.findings()),
            *self._judge_styles(),
        ]
        order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
        return tuple(sorted(found, key=lambda item: (order.index(item.severity), -item.num_examples)))

    def _add_json(self, parsed: JsonAnswer, example: Example) -> None:
        example_id = example.example_id
        if parsed.has_repeated_keys:
            self._repeated_keys.add(example_id)
        for number_of_object, (path, item) in enumerate(iterate_objects(parsed.value)):
            if number_of_object < MAX_LEAVES and (path in self._objects or len(self._objects) < _MAX_PATHS):
                keys = tuple(key[:_MAX_KEY_CHARACTERS] for key in islice(item, _MAX_KEYS))
                self._objects.setdefault(path, _ObjectKeys(path)).add(keys, example_id)
        source = example.input_text
        texts = []
        for number_of_leaf, (path, value) in enumerate(iterate_leaves(parsed.value)):
            if number_of_leaf >= MAX_LEAVES:
                break
            if isinstance(value, str):
                texts.append(value)
            if path in self._fields or len(self._fields) < _MAX_PATHS:
                if path not in self._fields:
                    self._fields[path] = FieldForms(path)
                self._fields[path].add(value, source, example_id)
        self._add_marks("\n".join(texts), example_id)

    def _add_text(self, answer: str, example_id: str) -> None:
        self._add_marks(answer, example_id)
        for kind in read_quotes(answer):
            self._quotes.add(kind, example_id)
        if count_words(answer) >= _MIN_WORDS:
            self._shapes.add("list" if is_list(answer) else "prose", example_id)
            if not is_list(answer):
                self._ends.add("with" if ends_like_a_sentence(answer) else "without", example_id)

    def _add_marks(self, text: str, example_id: str) -> None:
        self._letters.add("full" if has_full_width_letters(text) else "half", example_id)
        if has_cjk(text):
            widths = read_mark_widths(text)
            if widths:
                self._widths.add("both" if len(widths) == 2 else next(iter(widths)), example_id)

    def _judge_formats(self) -> Iterator[DataFinding]:
        if self._repeated_keys.count:
            yield _make(
                "repeated-keys",
                Severity.ERROR,
                f"{self._repeated_keys.count} answers name a key of one object twice; parsers keep the last",
                "Keep one of them: the model learns to write both.",
                [self._repeated_keys],
            )
        formats = self._formats.most_common()
        if len(formats) == 2:
            (usual, _), (rare, tally) = formats
            yield _make(
                "answer-formats-differ",
                Severity.WARNING,
                f"{tally.count} of {self._num_answers} answers are {rare}, the others {usual}",
                "Bring the answers of a task into one form; keep other tasks in datasets of their own.",
                [tally],
            )

    def _judge_styles(self) -> Iterator[DataFinding]:
        full, half, both = (self._widths.get(width) for width in ("full", "half", "both"))
        rarer = min((full, half), key=lambda tally: tally.count)
        if both.count or (full.count and half.count):
            yield from self._judge_style(
                "punctuation-widths-differ",
                f"Chinese punctuation is full width in {full.count} answers, half width in {half.count}, "
                f"and both in {both.count}",
                "Write all punctuation in one width (the step normalise does it).",
                [both, rarer] if full.count and half.count else [both],
            )
        wide, narrow = self._letters.get("full"), self._letters.get("half")
        if wide.count and narrow.count:
            yield from self._judge_style(
                "full-width-letters",
                f"{wide.count} answers hold digits or Latin letters in full width",
                "Write them in half width (the step normalise does it).",
                [min((wide, narrow), key=lambda tally: tally.count)],
            )
        yield from self._judge_kinds(
            "quotes-differ", self._quotes, "quotation marks", "Use one kind of quotation marks."
        )
        yield from self._judge_kinds(
            "list-and-prose", self._shapes, "shapes", "Let all answers of a task be lists, or none."
        )
        # A few without a mark are cut off rather than of another style: truncated_outputs names those.
        num_rarer = min(self._ends.get("with").count, self._ends.get("without").count)
        if num_rarer >= _MIN_STYLE_FRACTION * self._ends.total:
            yield from self._judge_kinds(
                "final-marks-differ",
                self._ends,
                "ends, a full stop or its like",
                "End all answers in one way.",
            )

    def _judge_kinds(
        self, code: str, tallies: KeyedTally[str], what: str, remedy: str
    ) -> Iterator[DataFinding]:
        kinds = tallies.most_common()
        if len(kinds) > 1:
            listed = ", ".join(f"{kind} ({tally.count})" for kind, tally in kinds)
            message = f"text answers differ in their {what}: {listed}"
            yield from self._judge_style(code, message, remedy, [tally for _, tally in kinds[1:]])

    def _judge_style(
        self, code: str, message: str, remedy: str, rarer: list[IdTally]
    ) -> Iterator[DataFinding]:
        """Yield a warning unless the rarer style is too rare to matter."""
        num_rarer = sum(tally.count for tally in rarer)
        if num_rarer >= max(1, self._min_rare_fraction * self._num_answers):
            yield _make(code, Severity.WARNING, message, remedy, rarer)


def _make(code: str, severity: Severity, message: str, remedy: str, tallies: list[IdTally]) -> DataFinding:
    return DataFinding(
        code=code,
        severity=severity,
        message=message,
        where="answer",
        remedy=remedy,
        num_examples=sum(tally.count for tally in tallies),
        example_ids=merge_ids(tallies),
        source="MISSION C2",
    )


def _count_keys(differences: Iterator[tuple[frozenset[str], int]]) -> str:
    """Return the keys of differences with how many objects have each, the most frequent first."""
    counts: dict[str, int] = {}
    for keys, num_objects in differences:
        for key in sorted(keys):
            counts[key] = counts.get(key, 0) + num_objects
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{shown(key)} ({num})" for key, num in ranked[:_MAX_LISTED_KEYS])
    return listed + (f" and {len(ranked) - _MAX_LISTED_KEYS} more" if len(ranked) > _MAX_LISTED_KEYS else "")


def _build(parameters: Mapping[str, Any]) -> Check:
    return Uniformity(parameters["min_examples"], parameters["min_rare_fraction"])


KIND = CheckKind(
    name="uniformity",
    version=1,
    summary="Finds answers of a task that are not written alike: format, keys, order, types, style.",
    source="MISSION C2",
    rules={"min_examples": count(2), "min_rare_fraction": number(0, 1)},
    defaults={"min_examples": 10, "min_rare_fraction": 0.01},
    build=_build,
)
