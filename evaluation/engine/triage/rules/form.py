"""Format: the content is right, and its form is not the one that was asked for."""

from collections.abc import Iterator
from typing import Final

from evaluation.engine.scoring.json_output import FENCE
from evaluation.engine.triage.judging import JudgedAnswer
from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.signals import Case, Signal
from evaluation.engine.triage.values import flatten, same_content
from registry.artifacts.findings import shown, shown_list

RIGHT_BUT_FOR_FORM: Final = 0.95
RIGHT_IN_PROSE: Final = 0.8
PARTLY_RIGHT: Final = 0.4
"""Mending the form would not mend these answers, so it does not decide alone."""

_KIND: Final = FailureKind.FORMAT


def find_format(case: Case) -> Iterator[Signal]:
    """Look for faults of form: not strict JSON, another shape than the schema's, prose around a label."""
    judged = case.judged
    if judged.parsed is not None:
        yield from _of_json(judged)
    elif judged.is_content_right and judged.sample.is_label:
        yield _signal(
            "extra-prose",
            RIGHT_BUT_FOR_FORM,
            f"the right answer {shown(judged.sample.reference)!r} stands in the output, with more around it",
        )


def _of_json(judged: JudgedAnswer) -> Iterator[Signal]:
    parsed = judged.parsed
    if parsed is None:
        return
    if parsed.level == "unparsed":
        yield from _of_prose(judged)
        return
    if judged.is_content_right:
        confidence, words = RIGHT_BUT_FOR_FORM, "every value is right"
    else:
        confidence, words = PARTLY_RIGHT, "some values are wrong as well"
    if parsed.level == "lenient":
        what = _describe_surroundings(judged.answer.text)
        message = f"not JSON as it stands ({what}; {shown(parsed.reason)}), readable after repair; {words}"
        yield _signal("not-strict-json", confidence, message, reason=shown(parsed.reason), what=what)
    elif judged.schema_errors:
        first = judged.schema_errors[0]
        message = (
            f"breaks the schema in {len(judged.schema_errors)} places, first at {shown(first['path'])}: "
            f"{shown(first['message'])}; {words}"
        )
        yield _signal(
            "schema-violation", confidence, message, paths=[e["path"] for e in judged.schema_errors]
        )
    elif judged.is_content_right:
        yield _signal("value-form", 0.85, "the values are right and written in another form or JSON type")
    yield from _of_keys(judged)


def _of_keys(judged: JudgedAnswer) -> Iterator[Signal]:
    """The right values under other keys."""
    if judged.is_content_right or judged.parsed is None:
        return
    present = [value for _, value in flatten(judged.parsed.value)]
    lost = [item for item in judged.wrong if isinstance(item.expected, str | int | float)]
    moved = [item.path for item in lost if any(same_content(value, item.expected) for value in present)]
    if lost and len(moved) == len(judged.wrong):
        message = f"the right values stand under other keys than {shown_list(moved, limit=3)}"
        yield _signal("keys-differ", 0.85, message, paths=moved)


def _of_prose(judged: JudgedAnswer) -> Iterator[Signal]:
    num_wanted = len(list(flatten(judged.sample.expected)))
    num_told = num_wanted - len(judged.wrong)
    if judged.is_content_right:
        message = f"no JSON at all, but all {num_wanted} values stand in the text"
        yield _signal("no-json", RIGHT_IN_PROSE, message, num_values=num_wanted)
    elif num_told * 2 >= num_wanted:
        message = f"no JSON at all; {num_told} of {num_wanted} values stand in the text"
        yield _signal("no-json", 0.55, message, num_values=num_wanted, num_told=num_told)
    elif judged.answer.text.strip():
        message = f"no JSON at all, and only {num_told} of {num_wanted} values stand in the text"
        yield _signal("no-json", PARTLY_RIGHT, message, num_values=num_wanted, num_told=num_told)


def _describe_surroundings(text: str) -> str:
    stripped = text.strip()
    starts = [position for bracket in "{[" if (position := stripped.find(bracket)) >= 0]
    ends = max(stripped.rfind("}"), stripped.rfind("]"))
    parts = []
    if FENCE in stripped:
        parts.append("a code fence")
    if starts and stripped[: min(starts)].replace(FENCE, "").replace("json", "").strip():
        parts.append("words before")
    if ends >= 0 and stripped[ends + 1 :].replace(FENCE, "").strip():
        parts.append("words after")
    return ", ".join(parts) or "faults inside"


def _signal(code: str, confidence: float, message: str, **evidence: object) -> Signal:
    return Signal(kind=_KIND, code=code, confidence=confidence, message=message, evidence=evidence)
