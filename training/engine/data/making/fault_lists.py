"""Turning collected faults into one error that names them."""

from collections.abc import Sequence

from training.engine.errors import Fault, TrainingEngineError

MAX_LISTED_FAULTS = 50
"""Faults of one document beyond this many are counted, not listed."""
_MAX_DESCRIBED = 5


def refuse_if_faulty(
    error: type[TrainingEngineError], code: str, subject: str, faults: Sequence[Fault]
) -> None:
    """Do nothing when there is no fault.

    Args:
        error: The error to raise.
        code: Its stable code.
        subject: What is faulty, as the message begins.
        faults: All faults; the error carries the first 50, and its message says how many there are.

    Raises:
        TrainingEngineError: of the given type, when there is at least one fault.
    """
    if not faults:
        return
    described = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:_MAX_DESCRIBED])
    more = f" (and {len(faults) - _MAX_DESCRIBED} more)" if len(faults) > _MAX_DESCRIBED else ""
    raise error(
        code, f"{subject} has {len(faults)} fault(s): {described}{more}", faults=faults[:MAX_LISTED_FAULTS]
    )
