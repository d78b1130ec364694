"""Calculation: the right value has to be worked out from the input, and the model got it wrong."""

from collections.abc import Iterator
from typing import Final

from evaluation.engine.scoring.fields import MISSING
from evaluation.engine.triage.attempt import WITHOUT_ATTEMPT, find_no_attempt
from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.quantities import read_quantities, without_quantities
from evaluation.engine.triage.signals import Case, Signal
from evaluation.engine.triage.values import Origin, WrongValue
from evaluation.engine.triage.wordings import asks_for_computing, normal
from registry.artifacts.findings import shown

CHANCE_LIMIT: Final = 0.25
"""When a relation of the kind that was found gives more than a quarter of all numbers near the wanted one, it
proves little.
"""

_KIND: Final = FailureKind.CALCULATION


def find_calculation(case: Case) -> Iterator[Signal]:
    """Look for wrong values that follow from the input, and for answers that differ in numbers alone."""
    judged = case.judged
    asks = asks_for_computing(judged.answer.told)
    is_attempt = find_no_attempt(judged) is None
    for item in judged.wrong:
        if item.origin is Origin.DERIVED:
            yield _derived(item, asks=asks, is_attempt=is_attempt)
        elif not is_attempt:
            continue
        elif item.origin is Origin.NOWHERE and item.is_quantity:
            yield from _not_derived(item, case, asks=asks)


def _derived(item: WrongValue, *, asks: bool, is_attempt: bool) -> Signal:
    derivation = item.derivation
    chance = 1.0 if derivation is None else derivation.chance_fraction
    relation = "" if derivation is None else derivation.text
    is_strong = chance <= CHANCE_LIMIT
    confidence = 0.9 if is_strong else 0.75 if asks else 0.5
    if not is_attempt:
        confidence = WITHOUT_ATTEMPT
    observed = "nothing" if item.observed is MISSING else shown(item.observed)
    message = (
        f"{item.path}: {shown(item.expected)} follows from the input ({relation}); the answer has {observed}"
    )
    if not is_strong:
        message += f"; {chance:.0%} of the numbers near it would follow as well"
    return Signal(
        kind=_KIND,
        code="derivable",
        confidence=confidence,
        message=message,
        evidence={**item.to_json(), "chance_fraction": chance},
    )


def _not_derived(item: WrongValue, case: Case, *, asks: bool) -> Iterator[Signal]:
    """A number that stands nowhere and follows from nothing that was tried: a long calculation, or a fact."""
    told = read_quantities(case.judged.sample.input_text)
    num_given = len(told.numbers) + len(told.dates) + len(told.minutes)
    if asks and num_given >= 2:
        message = (
            f"{item.path}: the input has {num_given} quantities and speaks of a calculation, but no relation "
            f"that was tried gives {shown(item.expected)}"
        )
        yield Signal(
            kind=_KIND, code="calculation-asked", confidence=0.6, message=message, evidence=item.to_json()
        )
    elif item.observed is not MISSING and _differs_in_quantities_alone(item.expected, item.observed):
        message = f"{item.path}: {shown(item.observed)} differs from {shown(item.expected)} in numbers alone"
        yield Signal(
            kind=_KIND, code="numbers-differ", confidence=0.4, message=message, evidence=item.to_json()
        )


def _differs_in_quantities_alone(expected: object, observed: object) -> bool:
    is_number = isinstance(expected, int | float) and isinstance(observed, int | float)
    if is_number:
        return True
    left, right = str(expected), str(observed)
    if read_quantities(left).is_empty or read_quantities(right).is_empty:
        return False
    return normal(without_quantities(left)) == normal(without_quantities(right))
