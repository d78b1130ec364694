"""Telling failures apart: the user's input, the machine, or this code (DESIGN section 1)."""

import errno
import traceback
from collections.abc import Mapping
from typing import Any

from evaluation.engine.errors import EvaluationError
from registry.artifacts import errors as artifact_errors
from training.engine import errors as training_errors
from training.engine.out_of_memory import is_out_of_memory
from workers.job.errors import JobFolderError, StepRefused
from workers.job.result import JobFailure

OUT_OF_MEMORY_REMEDY = (
    "Treat it in this order: a smaller batch with gradient accumulation, a shorter maximum length, gradient "
    "checkpointing, and quantisation last."
)
"""The order of MISSION D5."""

_MACHINE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.ESTALE, errno.EMFILE, errno.ENFILE}
)

_USER_ERRORS: tuple[type[Exception], ...] = (
    training_errors.ConfigInvalid,
    training_errors.DataInvalid,
    training_errors.ChatTemplateUnsuitable,
    training_errors.TrainingFailed,
    training_errors.MergeRefused,
    artifact_errors.AdapterConfigError,
    artifact_errors.BaseModelError,
    artifact_errors.SafetensorsError,
    StepRefused,
)
_CODED_ERRORS = (training_errors.TrainingEngineError, artifact_errors.ArtifactError, StepRefused)
_MACHINE_ERRORS: tuple[type[Exception], ...] = (
    training_errors.BaseModelUnavailable,
    artifact_errors.StoreFullError,
)


def describe_failure(error: BaseException) -> JobFailure:
    """Returns the failure that an exception of a runner means.

    An exception that nobody expected is internal; its traceback belongs into the log of the process and not
    into the message, which users read.
    """
    if is_out_of_memory(error):
        return _out_of_memory()
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRNOS:
        code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "machine-error"
        return JobFailure(
            failure_class="infrastructure", code=code, message=f"The machine failed: {error.strerror}."
        )
    if isinstance(error, EvaluationError):
        return _of_evaluation(error)
    if isinstance(error, JobFolderError):
        return JobFailure(
            failure_class="internal",
            code=error.code,
            message=error.message,
            details=tuple(_detail(fault) for fault in error.faults),
        )
    if isinstance(error, _CODED_ERRORS):
        return JobFailure(
            failure_class=_class_of(error),
            code=error.code,
            message=str(error),
            details=tuple(_detail(fault) for fault in _faults_of(error)),
        )
    name = type(error).__name__
    message = f"The program has a fault ({name}); the log of the attempt holds the details."
    return JobFailure(failure_class="internal", code="unexpected-error", message=message)


def format_traceback(error: BaseException) -> str:
    """Returns the traceback for the log."""
    return "".join(traceback.format_exception(error))


def _out_of_memory() -> JobFailure:
    message = f"Memory ran out. {OUT_OF_MEMORY_REMEDY}"
    detail = {
        "code": "out-of-memory",
        "message": "The process asked for more memory than there was.",
        "where": "",
        "remedy": OUT_OF_MEMORY_REMEDY,
    }
    return JobFailure(
        failure_class="infrastructure", code="out-of-memory", message=message, details=(detail,)
    )


def _of_evaluation(error: EvaluationError) -> JobFailure:
    return JobFailure(
        failure_class=error.failure_class,
        code=error.code,
        message=error.message,
        details=tuple(error.to_json()["details"]),
    )


def _class_of(error: BaseException) -> str:
    if isinstance(error, _USER_ERRORS):
        return "user"
    return "infrastructure" if isinstance(error, _MACHINE_ERRORS) else "internal"


def _faults_of(error: BaseException) -> tuple[Any, ...]:
    return tuple(getattr(error, "faults", None) or getattr(error, "details", None) or ())


def _detail(fault: Any) -> Mapping[str, Any]:
    return {
        "code": fault.code,
        "message": fault.message,
        "where": fault.where or "",
        "remedy": getattr(fault, "remedy", None) or "",
    }
