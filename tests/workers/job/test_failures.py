"""Whose fault a failure is."""

import errno

import pytest

from evaluation.engine.errors import EvaluationError, Fault
from registry.artifacts.errors import SafetensorsError, StoreFullError
from training.engine.errors import BaseModelUnavailable, ConfigInvalid, MergeFailed, MergeRefused
from training.engine.errors import Fault as TrainingFault
from workers.job.errors import JobFolderError
from workers.job.failures import describe_failure, is_out_of_memory


class OutOfMemoryError(RuntimeError):
    """Named as torch's, which this test does not load."""


@pytest.mark.parametrize(
    ("error", "failure_class", "code"),
    [
        (MemoryError(), "infrastructure", "out-of-memory"),
        (OutOfMemoryError("CUDA"), "infrastructure", "out-of-memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: …"), "infrastructure", "out-of-memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "infrastructure", "disk-full"),
        (OSError(errno.EIO, "Input/output error"), "infrastructure", "machine-error"),
        (OSError(errno.ENOENT, "No such file"), "internal", "unexpected-error"),
        (ConfigInvalid("config-invalid", "bad"), "user", "config-invalid"),
        (MergeRefused("dora", "no"), "user", "dora"),
        (MergeFailed("not-finite", "NaN"), "internal", "not-finite"),
        (BaseModelUnavailable("base-unavailable", "no"), "infrastructure", "base-unavailable"),
        (SafetensorsError("cut off", code="safetensors-truncated"), "user", "safetensors-truncated"),
        (StoreFullError("full"), "infrastructure", "store-full"),
        (EvaluationError("x-y", "no", failure_class="infrastructure"), "infrastructure", "x-y"),
        (JobFolderError("input-missing", "no"), "internal", "input-missing"),
        (KeyError("secret"), "internal", "unexpected-error"),
    ],
)
def test_failures_are_told_apart(error: Exception, failure_class: str, code: str) -> None:
    failure = describe_failure(error)
    assert (failure.failure_class, failure.code) == (failure_class, code)


def test_messages_of_unexpected_errors_show_no_internals() -> None:
    failure = describe_failure(KeyError("/home/someone/secret"))
    assert "secret" not in failure.message
    assert "KeyError" in failure.message


def test_out_of_memory_names_the_treatments_in_their_order() -> None:
    # MISSION D5: batch with accumulation, sequence length, checkpointing, quantisation last.
    text = describe_failure(MemoryError()).message
    places = [text.index(word) for word in ("accumulation", "length", "checkpointing", "quantisation")]
    assert places == sorted(places)
    assert not is_out_of_memory(ValueError("out of memory"))


def test_every_fault_is_kept() -> None:
    training = ConfigInvalid(
        "config-invalid", "two faults", faults=[TrainingFault(code="a", message="m", where="w", remedy="r")]
    )
    assert describe_failure(training).details == ({"code": "a", "message": "m", "where": "w", "remedy": "r"},)
    evaluation = EvaluationError("suite-invalid", "one", faults=[Fault("b", "m", "w")])
    assert describe_failure(evaluation).details == (
        {"code": "b", "message": "m", "where": "w", "remedy": ""},
    )
