"""Judges one answer: does it pass, and if not, what is seen of it. No sorting into kinds is done here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluation.engine.json_text import make_storable
from evaluation.engine.scoring.behaviour import Behaviour
from evaluation.engine.scoring.fields import MISSING
from evaluation.engine.scoring.json_output import ParsedOutput, parse_output
from evaluation.engine.scoring.regression import ChoiceRule, score_text
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.triage.kinds import Outcome
from evaluation.engine.triage.samples import Sample
from evaluation.engine.triage.values import (
    ANSWER,
    LabelSpace,
    WrongValue,
    expected_values,
    find_extra_items,
    find_wrong_values,
    flatten,
    same_value,
)
from evaluation.engine.triage.wordings import (
    has_closing,
    has_emoji,
    has_markdown,
    normal,
    script_of,
    stands_in,
)

MUCH_LONGER: Final = 2.5
"""An open answer this many times as long as its reference, and at least ``LONGER_CHARACTERS`` longer, has
another style.
"""

LONGER_CHARACTERS: Final = 80

MAX_OUTPUT_CHARACTERS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model gave for one sample.

    Attributes:
        text: The output as a client sees it.
        finish_reason: ``stop`` or ``length``.
        num_tokens: Generated tokens.
        behaviour: Never stops, residue, repetition, preamble.
        told: Everything that the model read, as text: prompt, demonstrations, input.
    """

    text: str
    finish_reason: str
    num_tokens: int
    behaviour: Behaviour
    told: str


@dataclass(frozen=True, slots=True)
class StyleMark:
    """Something in which an answer differs in style: a stable code and what was seen."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer, judged.

    Attributes:
        sample: The sample.
        answer: What the model gave.
        outcome: By the rules.
        score: Share (0-1) of the expected values that are right where they are wanted; None when unjudged.
        parsed: The answer read as JSON; None when a text is wanted.
        is_content_right: Whether every expected value is there once liberties of form are forgiven.
        wrong: The values that are not, with where they could have come from.
        schema_errors: ``{"path", "message"}`` of a strictly parsed answer.
        style: Marks of another style.
    """

    sample: Sample
    answer: Answer
    outcome: Outcome
    score: float | None
    parsed: ParsedOutput | None
    is_content_right: bool
    wrong: tuple[WrongValue, ...]
    schema_errors: tuple[Mapping[str, str], ...]
    style: tuple[StyleMark, ...]


def judge_answer(
    sample: Sample, answer: Answer, *, validator: SchemaValidator | None, space: LabelSpace
) -> JudgedAnswer:
    """Judge one answer.

    A JSON answer passes when it is JSON strictly (DESIGN section 6), valid under the schema, and holds every
    value of the reference. A label passes when it is the reference but for case, width, blanks and marks at
    its edges. An open answer passes by its own rule when its style agrees too; without a rule it is unjudged
    unless it is the reference.

    Args:
        sample: The sample.
        answer: What the model gave.
        validator: Of the output schema; None checks none.
        space: The task's labels.
    """
    if sample.is_structured and sample.scoring is None:
        return _judge_structured(sample, answer, validator, space)
    return _judge_text(sample, answer, space)


def _judge_structured(
    sample: Sample, answer: Answer, validator: SchemaValidator | None, space: LabelSpace
) -> JudgedAnswer:
    parsed = parse_output(answer.text[:MAX_OUTPUT_CHARACTERS])
    errors = tuple(validator.errors(parsed.value)) if validator is not None and parsed.is_strict else ()
    observed = dict(flatten(parsed.value)) if parsed.level != "unparsed" else {}
    wanted = expected_values(sample)
    strict = observed if parsed.is_strict else {}
    num_right = sum(_is_exactly(strict.get(path, MISSING), value) for path, value in wanted)
    wrong = (
        *find_wrong_values(sample, observed, answer.told, space),
        *find_extra_items(sample.expected, parsed.value),
    )
    if parsed.level == "unparsed":
        # Prose that says all the same has the content without the form.
        wrong = tuple(item for item in wrong if not _is_told(item.expected, answer.text))
    is_passed = parsed.is_strict and not errors and not wrong and num_right == len(wanted)
    return JudgedAnswer(
        sample=sample,
        answer=answer,
        outcome=Outcome.PASSED if is_passed else Outcome.FAILED,
        score=num_right / len(wanted),
        parsed=parsed,
        is_content_right=not wrong,
        wrong=wrong,
        schema_errors=tuple(make_storable(dict(error)) for error in errors),
        style=(),
    )


def _judge_text(sample: Sample, answer: Answer, space: LabelSpace) -> JudgedAnswer:
    text = answer.text
    wanted = expected_values(sample)
    is_torn = sample.is_label and _names_other_label(sample, text, space)
    observed = {
        path: value if _is_told(value, text) and not is_torn else _other_answer(path, text)
        for path, value in wanted
    }
    wrong = find_wrong_values(sample, observed, answer.told, space)
    is_met = _is_met(sample, text, wrong)
    style = tuple(_style_marks(sample, answer)) if not sample.is_label else ()
    is_passed = is_met is True and not style
    outcome = Outcome.UNJUDGED if is_met is None else Outcome.PASSED if is_passed else Outcome.FAILED
    return JudgedAnswer(
        sample=sample,
        answer=answer,
        outcome=outcome,
        score=_score_text(sample, is_met, num_wanted=len(wanted), num_wrong=len(wrong)),
        parsed=None,
        is_content_right=(is_met is True) or (bool(wanted) and not wrong),
        wrong=wrong,
        schema_errors=(),
        style=style,
    )


def _score_text(sample: Sample, is_met: bool | None, *, num_wanted: int, num_wrong: int) -> float | None:
    if is_met is None:
        return None
    if is_met or not sample.checks.required_points:
        return float(is_met)
    return (num_wanted - num_wrong) / num_wanted


def _names_other_label(sample: Sample, text: str, space: LabelSpace) -> bool:
    """Whether an answer names a second label beside the right one: it has not chosen."""
    own = normal(sample.reference)
    others = (label for label in space.labels(ANSWER) if label != own and label not in own)
    return any(stands_in(label, text) for label in others)


def _is_met(sample: Sample, text: str, wrong: Sequence[WrongValue]) -> bool | None:
    """Whether the answer is right in itself; None when no rule can say."""
    rule = sample.scoring
    if rule is not None and not isinstance(rule, ChoiceRule):
        return score_text(rule, text)
    if normal(text) == normal(sample.reference):
        return True
    if sample.checks.required_points:
        return not wrong
    return False if sample.is_label else None


def _is_exactly(observed: Any, expected: Any) -> bool:
    return observed is not MISSING and same_value(observed, expected)


def _is_told(value: Any, text: str) -> bool:
    """Whether a value stands in a text, true and null as the words that they are."""
    if isinstance(value, bool) or value is None:
        return stands_in({True: "true", False: "false", None: "null"}[value], text)
    if isinstance(value, dict | list):
        return True
    return stands_in(str(value), text)


def _other_answer(path: str, text: str) -> Any:
    """What a short answer says instead; a long one says nothing at a place of its own."""
    return text.strip() if path == ANSWER and len(text.strip()) <= 200 and text.strip() else MISSING


def _style_marks(sample: Sample, answer: Answer) -> list[StyleMark]:
    """What differs in style from the reference and from the sample's checks.

    A mark that the reference has as well is the wanted style. A rule without a reference in prose (exact,
    contains, regex over a label) says nothing of style beside its checks.
    """
    text, reference, checks = answer.text, sample.reference, sample.checks
    marks = [
        StyleMark("forbidden-phrase", f"holds the forbidden phrase {phrase!r}")
        for phrase in checks.forbidden_phrases
        if stands_in(phrase, text)
    ]
    if checks.max_characters is not None and len(text.strip()) > checks.max_characters:
        marks.append(
            StyleMark(
                "too-long", f"has {len(text.strip())} characters; at most {checks.max_characters} are wanted"
            )
        )
    if sample.scoring is not None and not checks.required_points:
        return marks
    if answer.behaviour.preamble and not _begins_alike(text, reference):
        marks.append(StyleMark("preamble", "begins with a stock phrase that the reference does not have"))
    if has_closing(text) and not has_closing(reference):
        marks.append(StyleMark("closing-phrase", "ends with a stock phrase that the reference does not have"))
    if has_markdown(text) and not has_markdown(reference):
        marks.append(StyleMark("markdown", "is set with lists, headings or bold; the reference is plain"))
    if has_emoji(text) and not has_emoji(reference):
        marks.append(StyleMark("emoji", "has emoji; the reference has none"))
    long, short = len(text.strip()), len(reference.strip())
    if checks.max_characters is None and long > MUCH_LONGER * short and long - short >= LONGER_CHARACTERS:
        marks.append(StyleMark("much-longer", f"has {long} characters, the reference {short}"))
    marks += _register_marks(text, reference)
    return marks


def _register_marks(text: str, reference: str) -> list[StyleMark]:
    polite, plain = "\u60a8", "\u4f60"
    if script_of(reference) != "cjk":
        return []
    if polite in reference and polite not in text and plain in text:
        return [StyleMark("form-of-address", f"says {plain}; the reference says {polite}")]
    if plain in reference and polite not in reference and polite in text:
        return [StyleMark("form-of-address", f"says {polite}; the reference says {plain}")]
    return []


def _begins_alike(text: str, reference: str) -> bool:
    return normal(text)[:4] == normal(reference)[:4]
