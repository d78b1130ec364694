import errno
import json

import pytest
import torch

from training.engine.errors import ConfigInvalid, DataInvalid, Fault, NotFinite, TrainingEngineError
from training.engine.parallel.failures import (
    Failure,
    ProcessFailed,
    describe_error,
    find_first,
    restore_error,
)


def cross(error: Exception) -> Exception:
    return restore_error(json.loads(json.dumps(describe_error(error))))


def test_errors_of_the_engine_keep_class_code_and_faults() -> None:
    fault = Fault(code="bad-line", message="is bad", where="a.jsonl line 3", remedy="mend it")
    crossed = cross(DataInvalid("data-invalid", "1 fault", faults=[fault]))
    assert isinstance(crossed, DataInvalid)
    assert (crossed.code, crossed.message, crossed.faults) == ("data-invalid", "1 fault", (fault,))
    assert type(cross(ConfigInvalid("x", "y"))) is ConfigInvalid


def test_a_number_that_is_not_finite_keeps_its_place() -> None:
    error = NotFinite(what="loss", step=7, example_ids=["a", "b"])
    crossed = cross(error)
    assert isinstance(crossed, NotFinite)
    assert (crossed.what, crossed.step, crossed.example_ids) == ("loss", 7, ("a", "b"))
    assert crossed.message == error.message


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("no room"), MemoryError),
        (torch.OutOfMemoryError("CUDA out of memory"), MemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), OSError),
        (KeyError("name"), ProcessFailed),
    ],
)
def test_other_errors(error: Exception, expected: type[Exception]) -> None:
    crossed = cross(error)
    assert type(crossed) is expected
    assert not isinstance(crossed, TrainingEngineError)
    if isinstance(error, OSError):
        assert isinstance(crossed, OSError)
        assert (crossed.errno, crossed.filename) == (errno.ENOSPC, "/x")


def test_echoes_are_told_from_causes() -> None:
    peer = RuntimeError("[gloo/transport/tcp/pair.cc:554] Connection closed by peer [127.0.0.1]:3344")
    assert describe_error(peer)["is_echo"]
    assert not describe_error(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))["is_echo"]
    cause = DataInvalid("no-rows-left", "nothing")
    failures = [
        Failure(rank=0, seconds=1.0, error=peer, is_echo=True),
        Failure(rank=2, seconds=3.0, error=KeyError("later"), is_echo=False),
        Failure(rank=1, seconds=2.0, error=cause, is_echo=False),
    ]
    assert find_first(failures).error is cause
    assert find_first(failures[:1]).error is peer
