"""Unknown fact: the right value stands neither in the input nor among the task's labels, and follows from
nothing.
"""

from collections.abc import Iterator
from typing import Final

from evaluation.engine.scoring.fields import MISSING
from evaluation.engine.triage.attempt import WITHOUT_ATTEMPT, find_no_attempt
from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.signals import Case, Signal
from evaluation.engine.triage.values import Origin, WrongValue
from evaluation.engine.triage.wordings import is_admission
from registry.artifacts.findings import shown

INVENTED: Final = 0.85
LEFT_OUT: Final = 0.75
A_NUMBER: Final = 0.65
"""A number could also be the end of a calculation that was not found."""

_KIND: Final = FailureKind.UNKNOWN_FACT


def find_unknown_facts(case: Case) -> Iterator[Signal]:
    """Look for wrong values that the model could not have known, and for answers that say so."""
    judged = case.judged
    nowhere = [item for item in judged.wrong if item.origin is Origin.NOWHERE]
    is_attempt = find_no_attempt(judged) is None
    for item in nowhere:
        yield _unknown(item, is_attempt=is_attempt)
    if judged.wrong and is_admission(judged.answer.text):
        yield Signal(
            kind=_KIND,
            code="says-it-does-not-know",
            confidence=0.8 if nowhere else 0.5,
            message="the answer says that the model does not know, or was not told",
        )


def _unknown(item: WrongValue, *, is_attempt: bool) -> Signal:
    is_missing = item.observed is MISSING
    confidence = A_NUMBER if item.is_quantity else LEFT_OUT if is_missing else INVENTED
    if not is_attempt:
        confidence = WITHOUT_ATTEMPT
    what = "nothing" if is_missing else shown(item.observed)
    message = (
        f"{item.path}: {shown(item.expected)} stands neither in the prompt nor in the input nor in another "
        f"reference; the answer has {what}"
    )
    return Signal(
        kind=_KIND, code="value-not-given", confidence=confidence, message=message, evidence=item.to_json()
    )
