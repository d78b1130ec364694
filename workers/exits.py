"""What the end of a child process means."""

import signal
from pathlib import Path

from registry.choices import FailureClass
from workers.job.errors import JobFolderError
from workers.job.failures import OUT_OF_MEMORY_REMEDY
from workers.job.result import JobFailure, JobResult, read_result

_CGROUP_EVENTS = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)


def classify_exit(
    *, returncode: int, folder: Path, num_oom_kills_before: int, num_oom_kills_now: int
) -> JobResult:
    """Returns the result of an attempt from its exit status and result.json.

    A result that was written counts, whatever the exit status: the work was done. Without one, a signal is
    a failure of the machine and any other end a fault of the program.

    Args:
        returncode: As in `subprocess`: negative for a signal.
        folder: The work folder.
        num_oom_kills_before: Kills for want of memory in this control group, before the child was started.
        num_oom_kills_now: The same, now.
    """
    try:
        result = read_result(folder)
    except JobFolderError as error:
        return _failed(FailureClass.INTERNAL, error.code, error.message)
    if result is not None:
        return result
    if returncode == -signal.SIGKILL:
        is_out_of_memory = num_oom_kills_now > num_oom_kills_before
        return _killed_for_memory() if is_out_of_memory else _killed()
    if returncode < 0:
        message = f"The job process was ended by {_signal_name(-returncode)}; child.log holds its last words."
        return _failed(FailureClass.INFRASTRUCTURE, "child-crashed", message)
    message = (
        f"The job process ended with status {returncode} and left no result; child.log holds its last words."
    )
    return _failed(FailureClass.INTERNAL, "result-missing", message)


def count_oom_kills() -> int:
    """Counts the processes that the kernel has killed for want of memory in this control group; 0 when
    unknown.
    """
    for path in _CGROUP_EVENTS:
        try:
            text = path.read_text(encoding="ascii")
        except OSError:
            continue
        for line in text.splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill" and number.isdigit():
                return int(number)
    return 0


def _killed_for_memory() -> JobResult:
    message = f"The kernel killed the job process because memory ran out. {OUT_OF_MEMORY_REMEDY}"
    return _failed(FailureClass.INFRASTRUCTURE, "out-of-memory", message)


def _killed() -> JobResult:
    message = (
        "The job process was killed (SIGKILL). Want of memory is the usual reason: compare the machine's "
        "memory with what the model needs."
    )
    return _failed(FailureClass.INFRASTRUCTURE, "child-killed", message)


def _failed(failure_class: str, code: str, message: str) -> JobResult:
    return JobResult(failure=JobFailure(failure_class=str(failure_class), code=code, message=message))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
