"""Cleaning step: one way of writing widths, marks, white space, dates, amounts and units (MISSION C3(4)).

A model copies inconsistencies of its data faithfully, so answers are written one way throughout. Inputs are
another matter: the deployed model sees them raw. Widths, punctuation and white space are unified there too,
as these rarely carry meaning and multiply the spellings to learn; dates, amounts and units are not, because
a model that was only shown ISO dates would have to read ``5 March 2024`` for the first time in service.
System messages stay, since the deployed prompt must be the trained one.

Extraction tasks quote the input in JSON values, and a quote in another form is no quote. So where practically
all dates of the answers are quotes, quoted dates follow the input (``quoted_values``); the same holds for
amounts and for units. Where answers have a form of their own, a quote among them is the inconsistency.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count, islice
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.cleaning.json_answers import is_json_container, map_string_values, string_values
from training.engine.data.cleaning.normalising.amounts import YUAN_FORMS, unify_amounts
from training.engine.data.cleaning.normalising.dates import write_dates_as_iso
from training.engine.data.cleaning.normalising.protected import mask_protected
from training.engine.data.cleaning.normalising.punctuation import find_in_any_width, unify_punctuation
from training.engine.data.cleaning.normalising.quoting import KINDS as QUOTED_KINDS
from training.engine.data.cleaning.normalising.quoting import QuotingTally, find_own_kind
from training.engine.data.cleaning.normalising.treated import Treated
from training.engine.data.cleaning.normalising.units import unify_units
from training.engine.data.cleaning.normalising.white_space import tidy_white_space
from training.engine.data.cleaning.normalising.width import fold_width
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.settings_rules import FLAG, choice, optional

_MAX_REMEMBERED, _MAX_REMEMBERED_CHARACTERS = 20_000, 64
# ASCII without digits on one line, single spaces between: no part has anything to do there.
_SETTLED_FORM = re.compile(r"[!-/:-~]++(?: [!-/:-~]++)*+")
_MAX_LOOKED_FOR = 2000
"""Of one answer only so many values are looked for in the input: each costs a search through all of it."""
# One part can make work for another, such as a space that only a folded blank shows.
_MAX_ROUNDS = 5
_MAX_SHOWN_FLAGS = 3

Part = tuple[str, Callable[[str], Treated]]


class _Notes:
    """What was done to one example."""

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}
        self.flagged: dict[str, None] = {}

    def add(self, flags: tuple[tuple[str, str], ...]) -> None:
        for code, words in flags:
            self.reasons[code] = None
            self.flagged[words] = None

    def merge(self, other: "_Notes") -> None:
        self.reasons.update(other.reasons)
        self.flagged.update(other.flagged)

    def detail(self) -> str:
        return ", ".join(shown(words) for words in list(self.flagged)[:_MAX_SHOWN_FLAGS])


class _Normalise:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext | None) -> None:
        self._parameters = parameters
        self.counts: Counter[Hashable] = Counter()
        parts = _make_parts(parameters)
        for_input = _for_target(parts, parameters, "input")
        for_answer = _for_target(parts, parameters, "answer")
        self._input_form, self._answer_form = _Form(for_input), _Form(for_answer)
        self._only_answer_form = _Form(tuple(part for part in for_answer if part not in for_input))
        self._quoting = QuotingTally(parameters["quoted_values"], self.counts)

    def __reduce__(self) -> tuple[Callable[..., "_Normalise"], tuple[Any, ...]]:
        # The forms hold functions, which do not pickle, and are made anew.
        return _restore, (dict(self._parameters), dict(self.counts))

    def observe(self, example: Example) -> None:
        """Learn whether answers quote dates, amounts and units as the input has them."""
        if not self._only_answer_form.parts or not is_json_container(example.answer or ""):
            return
        input_text = example.input_text
        for value in islice(string_values(example.answer or ""), _MAX_LOOKED_FOR):
            is_quote = value in input_text
            kinds = self._find_kinds(value)
            if kinds:
                self.counts["to change"] += 1
                self.counts["to change, quoted"] += is_quote
                self._quoting.add(kinds, is_quote=is_quote)
            elif not is_quote:
                # Written in the form that is wanted, and not copied: this answer does not quote.
                own = find_own_kind(self._answer_form.settle(value).text)
                self._quoting.add(own, is_quote=False)

    def apply(self, example: Example) -> Outcome:
        notes = _Notes()
        inputs = {
            index: self._input_form.write(message.content, notes)
            for index, message in enumerate(example.messages)
            if message.role == "user"
        }
        new_input = example.with_contents(inputs).input_text
        answers = {
            index: self._treat_answer(message.content, example.input_text, new_input, notes)
            for index, message in enumerate(example.messages)
            if message.role == "assistant"
        }
        normalised = example.with_contents({**inputs, **answers})
        if normalised == example:
            return Outcome.flagged(example, *notes.reasons, detail=notes.detail())
        return Outcome.changed(normalised, *notes.reasons, detail=notes.detail())

    def facts(self) -> Mapping[str, Any]:
        return {
            "num_values_to_change": self.counts["to change"],
            "num_of_these_quoted_from_input": self.counts["to change, quoted"],
            "keeps_quoted_values": self._quoting.to_json(),
            "num_quotes_lost": self.counts["quotes lost"],
        }

    def _find_kinds(self, value: str) -> tuple[str, ...]:
        """Return what of dates, amounts and units would change in a value of an answer."""
        settled = self._only_answer_form.settle(value)
        told = (*settled.reasons, *(code for code, _ in settled.flags))
        return tuple(kind for kind in QUOTED_KINDS if kind in told) if told else ()

    def _treat_answer(self, text: str, old_input: str, new_input: str, notes: _Notes) -> str:
        if not self._answer_form.parts or not is_json_container(text):
            return self._answer_form.write_prose(text, notes)

        numbers = count()

        def treat(value: str) -> str:
            is_quote = next(numbers) < _MAX_LOOKED_FOR and value in old_input
            keeps = is_quote and self._quoting.keeps(self._find_kinds(value))
            if keeps and (quote := self._follow_input(value, new_input, notes)):
                return quote
            new = self._answer_form.write_prose(value, notes)
            self.counts["quotes lost"] += is_quote and new not in new_input
            return new

        return map_string_values(text, treat)

    def _follow_input(self, value: str, new_input: str, notes: _Notes) -> str:
        """Return what became of a quoted value in the input, or "" when it is not found there any more."""
        own = _Notes()
        quote = value
        for _ in range(_MAX_ROUNDS):
            like_input = self._input_form.write_prose(quote, own)
            # Alone, a value can get marks of another width than in its sentence.
            found = like_input if like_input in new_input else ""
            found = found or find_in_any_width(new_input, like_input) or find_in_any_width(new_input, quote)
            if found in ("", quote):
                quote = found
                break
            quote = found
        if quote and quote != value:
            notes.merge(own)
            notes.reasons.update({} if own.reasons else {"punctuation": None})
        return quote


def _restore(parameters: Mapping[str, Any], counts: Mapping[Hashable, int]) -> _Normalise:
    step = _Normalise(parameters, None)
    step.counts.update(counts)
    return step


@dataclass(frozen=True, slots=True)
class _Settled:
    """What became of a text, what changed it, and what a person should look at."""

    text: str
    reasons: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]


class _Form:
    """The form that one kind of texts is written in: some parts, applied until nothing changes any more."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        # Labels come again in every other row.
        self._settle_remembered = lru_cache(maxsize=_MAX_REMEMBERED)(self._settle)

    def write(self, text: str, notes: _Notes) -> str:
        """Return a text in this form; of JSON only the string values are treated."""
        if self.parts and is_json_container(text):
            return map_string_values(text, lambda value: self.write_prose(value, notes))
        return self.write_prose(text, notes)

    def write_prose(self, text: str, notes: _Notes) -> str:
        """Return prose in this form."""
        settled = self.settle(text)
        if settled.flags:
            notes.add(settled.flags)
        if settled.reasons:
            notes.reasons.update(dict.fromkeys(settled.reasons))
        return settled.text

    def settle(self, text: str) -> _Settled:
        """Return what becomes of prose."""
        if _SETTLED_FORM.fullmatch(text):
            return _Settled(text, (), ())
        return (
            self._settle_remembered(text) if len(text) <= _MAX_REMEMBERED_CHARACTERS else self._settle(text)
        )

    def _settle(self, text: str) -> _Settled:
        treated, masked = text, mask_protected(text)
        reasons: dict[str, None] = {}
        flags: dict[tuple[str, str], None] = {}
        for _ in range(_MAX_ROUNDS):
            before = treated
            for reason, treat in self.parts:
                result = treat(masked.text)
                if result.flags:
                    flags.update(dict.fromkeys(result.flags))
                if result.text != masked.text:
                    reasons[reason] = None
                    treated = masked.unmask(result.text)
                    masked = mask_protected(treated)
            if treated == before:
                return _Settled(treated, tuple(reasons), tuple(flags))
        # Rules that never agree on a text leave it alone, so that a second run cannot differ from the first.
        return _Settled(text, ("unsettled",), tuple(flags))


def _for_target(parts: tuple[Part, ...], parameters: Mapping[str, Any], target: str) -> tuple[Part, ...]:
    return tuple(part for part in parts if parameters[_SWITCHES[part[0]]] in ("both", target))


def _plain(treat: Callable[[str], str]) -> Callable[[str], Treated]:
    return lambda text: Treated(treat(text))


def _make_parts(parameters: Mapping[str, Any]) -> tuple[Part, ...]:
    return (
        ("width", _plain(fold_width)),
        ("punctuation", _plain(unify_punctuation)),
        ("white-space", _plain(partial(tidy_white_space, join_cjk=parameters["join_cjk"]))),
        ("date", partial(write_dates_as_iso, day_first=parameters["day_first"])),
        (
            "amount",
            partial(unify_amounts, yuan=parameters["yuan"], expand_scales=parameters["expand_scales"]),
        ),
        ("unit", _plain(unify_units)),
    )


_SWITCHES = {
    "width": "width",
    "punctuation": "punctuation",
    "white-space": "white_space",
    "date": "dates",
    "amount": "amounts",
    "unit": "units",
}
_TARGET = choice("both", "input", "answer", "off")

KIND = StepKind(
    name="normalise",
    version=1,
    summary="Writes widths, punctuation, white space, dates, amounts and units in one way.",
    source="MISSION C3(4)",
    rules={
        **dict.fromkeys(_SWITCHES.values(), _TARGET),
        "join_cjk": FLAG,
        "day_first": optional(FLAG),
        "yuan": choice(*YUAN_FORMS),
        "expand_scales": FLAG,
        "quoted_values": choice("auto", "keep", "change"),
    },
    defaults={
        "width": "both",
        "punctuation": "both",
        "white_space": "both",
        "dates": "answer",
        "amounts": "answer",
        "units": "answer",
        "join_cjk": False,
        "day_first": None,
        "yuan": "keep",
        "expand_scales": False,
        "quoted_values": "auto",
    },
    build=_Normalise,
    needs_first_pass=True,
    is_local=True,
    observes_locally=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
