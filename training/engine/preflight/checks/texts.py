"""Checks of the texts: answers that are empty, cut, equal or doubled."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from registry.artifacts.findings import Severity, shown
from training.engine.data.checks.check import DataFinding
from training.engine.data.checks.misalignment import Misalignment
from training.engine.data.checks.truncation import KIND as TRUNCATION
from training.engine.data.examples import Example
from training.engine.data.shingles import normalise
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.outcomes import FAILING_FRACTION, failed, judge_part, passed, skipped, warned
from training.engine.preflight.report import CheckResult

MIN_EQUAL_ANSWERS: Final = 5
"""Fewer examples may have one answer by chance."""
MAX_COPIES_FRACTION: Final = 0.5
"""From this part on, copies outweigh everything else (project's own choice; the near duplicates are the data
preparation's affair, MISSION C3(1))."""
WARNED_COPIES_FRACTION: Final = 0.2
MAX_DROPPED_FRACTION: Final = 0.5
WARNED_DROPPED_FRACTION: Final = 0.05
_CUT_CODES: Final = ("json-cut-off", "ends-in-mid-sentence", "cut-at-one-length")
_SHIFT_CODES: Final = ("answers-shifted", "answers-unrelated")
_UNKNOWN: Final = "the texts that the rows were made from are not known"


def check_empty_answers(view: DataView) -> CheckResult:
    """No answer is empty."""
    if view.examples:
        empty = [item.example_id for item in view.examples if not (item.answer or "").strip()]
        num_all = len(view.examples)
    else:
        empty = [
            row.example_id for row in view.rows if set(row.trained_ids) <= view.end_ids and row.is_trained
        ]
        num_all = len(view.rows)
    if not empty:
        return passed("answers-not-empty", f"none of {num_all} answers is empty")
    return judge_part(
        "answers-not-empty",
        HandbookRow.WRONG_DATA,
        f"{len(empty)} of {num_all} answers are empty: the model learns to say nothing",
        remedy="Drop these examples, or find out where their answers went.",
        example_ids=empty,
        num_all=num_all,
    )


def check_equal_answers(view: DataView) -> CheckResult:
    """Not all answers are one and the same."""
    if view.examples:
        answers = {normalise(item.answer or "") for item in view.examples}
    else:
        answers = {" ".join(map(str, row.trained_ids)) for row in view.rows}
    num_all = len(view.examples) or len(view.rows)
    if len(answers) != 1 or num_all < MIN_EQUAL_ANSWERS:
        return passed("answers-differ", f"{num_all} examples have {len(answers)} different answers")
    return failed(
        "answers-differ",
        HandbookRow.LOSS_NEAR_ZERO,
        f"all {num_all} examples have one and the same answer: the loss falls to 0 and nothing is learnt",
        remedy="Look at the examples: a column was read wrongly, or one value was written everywhere.",
    )


def check_copies(view: DataView) -> CheckResult:
    """Copies of examples do not outweigh the rest."""
    if view.examples:
        keys = [(item.example_id, _identify(item)) for item in view.examples]
    else:
        keys = [(row.example_id, " ".join(map(str, row.input_ids))) for row in view.rows]
    seen: set[str] = set()
    copies = []
    for name, key in keys:
        if key in seen:
            copies.append(name)
        seen.add(key)
    fraction = len(copies) / max(1, len(keys))
    message = f"{len(copies)} of {len(keys)} examples are copies of others ({fraction:.0%})"
    remedy = "Remove the duplicates (assay dataset clean, step duplicates)."
    if fraction > MAX_COPIES_FRACTION:
        return failed("few-copies", HandbookRow.REPETITION, message, remedy=remedy, example_ids=copies)
    if fraction > WARNED_COPIES_FRACTION:
        return warned("few-copies", HandbookRow.REPETITION, message, remedy=remedy, example_ids=copies)
    return passed("few-copies", message)


def check_answers_whole(view: DataView) -> CheckResult:
    """No answer is divided over two turns, of which only the last is trained."""
    if not view.examples:
        return skipped("answers-in-one-turn", _UNKNOWN)
    divided = [
        item.example_id
        for item in view.examples
        if any(
            left.role == right.role == "assistant"
            for left, right in zip(item.messages, item.messages[1:], strict=False)
        )
    ]
    if not divided:
        return passed("answers-in-one-turn", f"no answer of {len(view.examples)} examples is cut in two")
    return judge_part(
        "answers-in-one-turn",
        HandbookRow.WRONG_DATA,
        f"in {len(divided)} of {len(view.examples)} examples the assistant speaks twice in a row: the "
        "answer is cut in two, and only its second part is trained",
        remedy="Join the two messages into one.",
        example_ids=divided,
        num_all=len(view.examples),
    )


def check_answers_finished(view: DataView) -> CheckResult:
    """No answer ends in its middle: cut JSON, a comma at the end, one greatest length."""
    if not view.examples:
        return skipped("answers-finished", _UNKNOWN)
    running = TRUNCATION.build(TRUNCATION.defaults)
    for example in view.examples:
        running.add(example)
    found = [item for item in running.findings() if item.code in _CUT_CODES]
    if not found:
        return passed("answers-finished", f"no answer of {len(view.examples)} ends in its middle")
    is_spoilt = any(
        item.severity is Severity.ERROR and item.num_examples >= FAILING_FRACTION * len(view.examples)
        for item in found
    )
    return _from_findings(
        "answers-finished", HandbookRow.NEVER_STOPS, found, judge=failed if is_spoilt else warned
    )


def check_alignment(view: DataView) -> CheckResult:
    """Answers stand with their own inputs, and not a row above or below."""
    if not view.examples:
        return skipped("answers-aligned", _UNKNOWN)
    running = Misalignment()
    for example in view.examples:
        running.add(example)
    found = [item for item in running.findings() if item.code in _SHIFT_CODES]
    if not found:
        return passed("answers-aligned", f"no sign that answers of {len(view.examples)} examples are shifted")
    return _from_findings("answers-aligned", HandbookRow.OFF_TOPIC, found, judge=warned)


def check_dropped(view: DataView) -> CheckResult:
    """Most examples can be trained on."""
    num_all = len(view.rows) + len(view.dropped)
    fraction = len(view.dropped) / max(1, num_all)
    if fraction <= WARNED_DROPPED_FRACTION:
        return passed("few-dropped", f"{len(view.dropped)} of {num_all} examples are left out")
    reasons = Counter("too long" if "max_length" in item.reason else item.reason for item in view.dropped)
    reason, count = reasons.most_common(1)[0]
    row = HandbookRow.LONG_INPUT_COLLAPSE if reason == "too long" else HandbookRow.WRONG_DATA
    remedy = (
        "Raise max_length_tokens, or divide the long examples."
        if reason == "too long"
        else "Look at these examples; their texts or the template are not what they should be."
    )
    judge = failed if fraction > MAX_DROPPED_FRACTION else warned
    return judge(
        "few-dropped",
        row,
        f"{len(view.dropped)} of {num_all} examples ({fraction:.0%}) are left out, {count} of them: "
        f"{shown(reason)}",
        remedy=remedy,
        example_ids=[item.example_id for item in view.dropped],
    )


def _identify(example: Example) -> str:
    return "\x00".join(f"{message.role}\x01{normalise(message.content)}" for message in example.messages)


def _from_findings(
    code: str, row: HandbookRow, found: list[DataFinding], *, judge: Callable[..., CheckResult]
) -> CheckResult:
    return judge(
        code,
        row,
        "; ".join(f"{item.where}: {item.message}" if item.where else item.message for item in found[:3]),
        remedy=found[0].remedy,
        example_ids=found[0].example_ids,
    )
