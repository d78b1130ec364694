"""Refusals of the reading and rendering of data as failed checks of the handbook's rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from training.engine.errors import TrainingEngineError
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.outcomes import failed
from training.engine.preflight.report import CheckResult

_ROWS: Final[Mapping[str, HandbookRow]] = MappingProxyType(
    {
        # The chat template and the data.
        "end-token-missing": HandbookRow.NEVER_STOPS,
        "answer-not-recoverable": HandbookRow.WRONG_DATA,
        "prompt-not-a-prefix": HandbookRow.WRONG_DATA,
        "template-refused": HandbookRow.WRONG_DATA,
        "double-bos": HandbookRow.WRONG_DATA,
        "no-rows-left": HandbookRow.WRONG_DATA,
        # The model and its first step.
        "lora-without-gradient": HandbookRow.NOT_TRAINABLE,
        "weights-without-gradient": HandbookRow.NOT_TRAINABLE,
        "loss-not-finite": HandbookRow.LOSS_NOT_FINITE,
        "packing-leaks": HandbookRow.PACKING_LEAK,
    }
)
_REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "end-token-missing": "Use a chat template that ends each answer with the end token.",
        "answer-not-recoverable": "Use a chat template that writes answers unchanged.",
        "prompt-not-a-prefix": "Use a template whose generation prompt is the beginning of an answer, and "
        "that leaves earlier turns as they are.",
        "template-refused": "Write the messages with the roles that the template knows.",
        "double-bos": "Take one of the two BOS tokens out of the template.",
        "no-rows-left": "Look at the reasons in the log: raise max_length_tokens or mend the data.",
        "loss-not-finite": "Lower the learning rate or take bfloat16 or float32, and look at these examples.",
        "packing-leaks": "Set training.packing to false.",
    }
)


def is_refusal(error: TrainingEngineError) -> bool:
    """Return whether an error is one that the handbook has a row for."""
    return error.code in _ROWS


def as_failed_check(error: TrainingEngineError) -> CheckResult:
    """Return a refusal as the failed check of its row.

    Raises:
        TrainingEngineError: The error itself where the handbook has no row for it: a file that cannot be read
            is no fault of the training.
    """
    if not is_refusal(error):
        raise error
    row = _ROWS[error.code]
    return failed(error.code, row, error.message, remedy=_REMEDIES.get(error.code, ""))
