"""Missing capability: the model does not do the task at all, or no better than by guessing."""

from collections.abc import Iterator
from typing import Final

from evaluation.engine.triage.attempt import find_no_attempt
from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.signals import Case, Signal
from evaluation.engine.triage.values import Origin, WrongValue, general_path
from registry.artifacts.findings import shown

LABELS_GUESSED: Final = 0.6
"""A base that guesses the labels lacks the capability, or was never shown which label the house wants: the
demonstration task of this repository begins at chance and is learnt. So the rule of style speaks as well.
"""

_KIND: Final = FailureKind.MISSING_CAPABILITY


def find_missing_capability(case: Case) -> Iterator[Signal]:
    """Look for empty, looping, refusing, foreign-language and off-topic answers, and for guessed labels."""
    fault = find_no_attempt(case.judged)
    if fault is not None:
        yield _signal(fault.code, fault.confidence, fault.message)
    for item in case.judged.wrong:
        yield from _of_value(item, case)


def _of_value(item: WrongValue, case: Case) -> Iterator[Signal]:
    if item.origin is Origin.LABEL:
        yield _of_label(item, case)
    elif item.origin is Origin.INPUT:
        message = f"{item.path}: {shown(item.expected)} stands in the input and was not taken from there"
        yield _signal("value-in-input-missed", 0.55, message, **item.to_json())
    elif item.origin is Origin.COMPOSED:
        message = f"{item.path}: the text or list that is wanted was not given"
        yield _signal("text-differs", 0.4, message, path=item.path)


def _of_label(item: WrongValue, case: Case) -> Signal:
    record = case.labels.get(general_path(item.path))
    facts = item.to_json()
    if record is None:
        return _signal("wrong-label", 0.4, f"{item.path}: another label than {shown(item.expected)}", **facts)
    counts = (
        f"{record.num_right} of {record.num_answers} are right over all samples, with {record.num_labels} "
        "labels"
    )
    if record.is_chance:
        message = f"{item.path}: a wrong label, and {counts}: guessing does as well"
        if record.commonest_fraction >= 0.8:
            message += f"; {record.commonest_fraction:.0%} of the answers are one and the same"
        return _signal("labels-guessed", LABELS_GUESSED, message, **facts)
    message = f"{item.path}: a wrong label, while {counts}"
    return _signal("wrong-label", 0.45, message, **facts)


def _signal(code: str, confidence: float, message: str, **evidence: object) -> Signal:
    return Signal(kind=_KIND, code=code, confidence=confidence, message=message, evidence=evidence)
