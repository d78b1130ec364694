"""Errors that cross from one process to another, and which of several came first."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch import distributed

from training.engine import errors
from training.engine.errors import Fault, NotFinite, TrainingEngineError

_OUT_OF_MEMORY_TEXTS: Final = ("can't allocate memory", "cannot allocate memory", "out of memory")
_PEER_TEXTS: Final = (
    "closed by peer",
    "connection reset",
    "broken pipe",
    "socket closed",
    "connection refused",
    "timed out waiting",
    "application timeout caused pair closure",
    "nccl communicator was aborted",
    "remote process exited",
)
"""What gloo and NCCL say in the processes that are left when another one has ended."""


class ProcessEnded(RuntimeError):
    """A process of a training ended without saying why.

    Args:
        rank: Its number.
        status: As in `subprocess.Popen.returncode`: negative for a signal.
    """

    def __init__(self, rank: int, status: int) -> None:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        super().__init__(f"process {rank} of the training was ended {how}")
        self.rank = rank
        self.status = status


class ProcessFailed(RuntimeError):
    """A process of a training raised something that nobody expected; its traceback is in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How one process failed.

    Attributes:
        rank: Number of the process.
        seconds: When, by the machine's monotonic clock.
        error: What it raised.
        is_echo: Whether it says no more than that another process is gone.
    """

    rank: int
    seconds: float
    error: Exception
    is_echo: bool


def find_first(failures: Sequence[Failure]) -> Failure:
    """Return the failure that the others followed from: the first that is no echo of another.

    Args:
        failures: At least one.
    """
    return min(failures, key=lambda failure: (failure.is_echo, failure.seconds, failure.rank))


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON."""
    described: dict[str, Any] = {
        "type": type(error).__name__,
        "message": str(error),
        "is_out_of_memory": _is_out_of_memory(error),
        "is_echo": _is_echo(error),
    }
    if isinstance(error, TrainingEngineError):
        described |= {"code": error.code, "faults": [asdict(fault) for fault in error.faults]}
    if isinstance(error, NotFinite):
        described |= {"what": error.what, "step": error.step, "example_ids": list(error.example_ids)}
    if isinstance(error, OSError):
        described |= {"errno": error.errno, "strerror": error.strerror, "filename": error.filename}
    return described


def restore_error(described: Mapping[str, Any]) -> Exception:
    """Return the error that `describe_error` took, of the same class where it is one of the engine's or an
    `OSError`.
    """
    message = str(described["message"])
    kind = getattr(errors, str(described["type"]), None)
    if kind is NotFinite:
        return NotFinite(
            what=described["what"], step=described["step"], example_ids=tuple(described["example_ids"])
        )
    if isinstance(kind, type) and issubclass(kind, TrainingEngineError):
        faults = [Fault(**fault) for fault in described["faults"]]
        return kind(described["code"], message, faults=faults)
    if described["is_out_of_memory"]:
        return MemoryError(message)
    if described.get("errno") is not None:
        return OSError(described["errno"], described["strerror"], described["filename"])
    return ProcessFailed(f"{described['type']}: {message}")


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        text in str(error).lower() for text in _OUT_OF_MEMORY_TEXTS
    )


def _is_echo(error: BaseException) -> bool:
    if isinstance(error, distributed.DistNetworkError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _PEER_TEXTS)
