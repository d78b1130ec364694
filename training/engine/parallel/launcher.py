"""A training on several processes of this machine, started and ended as one."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from training.engine.parallel.failures import Failure, ProcessEnded, find_first, restore_error
from training.engine.parallel.messages import MessageReader
from training.engine.parallel.place import ProcessPlace, list_places
from training.engine.parallel.task import TrainingTask
from training.engine.progress import RunReporter
from training.engine.step_record import StepObserver
from training.engine.trainer import run_training
from training.engine.training_result import TrainingResult

GRACE_SECONDS: Final = 5.0
"""How long the others may take to say what happened to them after one has failed."""
STANDARD_ERROR: Final = 2
_POLL_SECONDS: Final = 0.2
_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run_in_processes(
    task: TrainingTask,
    *,
    num_processes: int,
    report: RunReporter,
    scratch: Path,
    observers: Sequence[StepObserver] = (),
    threads_per_process: int | None = None,
) -> TrainingResult:
    """Train with several processes, or in this one where one is asked for.

    The result is that of one process up to the order in which numbers are summed. The processes are children
    of this one and in its process group; they end with it. When one fails all are ended.

    Args:
        task: What is to be done.
        num_processes: At least 1; see `training.engine.parallel.distributed.default_num_processes`.
        report: Receives what the first process reports.
        scratch: Existing folder for a small temporary one.
        observers: Are told of every step of the first process.
        threads_per_process: For arithmetic; None leaves the choice to the libraries.

    Raises:
        TrainingEngineError: What the process raised that failed first, as `run_training` documents it.
        MemoryError: Memory ran out in a process, or the machine killed it.
        OSError: Of a process's files.
        ProcessEnded: A process ended without a word.
        ProcessFailed: A process raised something unexpected; its log on standard error holds the details.
    """
    if num_processes == 1:
        return run_training(**task.arguments(), report=report, observers=observers)
    with TemporaryDirectory(prefix="processes-", dir=scratch) as folder:
        places = list_places(num_processes, Path(folder))
        file = Path(folder) / "task.json"
        task.write(file)
        processes = _Processes(file, places, threads_per_process)
        try:
            values = processes.follow(MessageReader(report, observers))
        finally:
            processes.kill()
    return TrainingResult.from_values(values)


class _Processes:
    """The started processes and what they say."""

    def __init__(self, task: Path, places: Sequence[ProcessPlace], num_threads: int | None) -> None:
        self._inbox: queue.SimpleQueue[tuple[int, str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._failures: list[Failure] = []
        self._result: Mapping[str, Any] | None = None
        self._readers: list[threading.Thread] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._own_statuses: list[int | None] = []
        try:
            for place in places:
                self._start(task, place, num_threads)
        except OSError:
            self.kill()
            raise

    def _start(self, task: Path, place: ProcessPlace, num_threads: int | None) -> None:
        incoming, outgoing = os.pipe()
        variables = {} if num_threads is None else dict.fromkeys(_THREAD_VARIABLES, str(num_threads))
        command = [sys.executable, "-m", "training.engine.parallel.worker"]
        try:
            child = subprocess.Popen(
                [*command, str(task), json.dumps(place.to_json()), str(outgoing)],
                stdin=subprocess.PIPE,
                stdout=STANDARD_ERROR,
                pass_fds=(outgoing,),
                env={**os.environ, **variables},
            )
        finally:
            os.close(outgoing)
        self._children.append(child)
        reader = threading.Thread(target=self._read, args=(place.rank, incoming), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, rank: int, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.endswith("\n"):  # a killed process may leave half a line
                    message = json.loads(line)
                    self._inbox.put((rank, message["kind"], message["content"]))

    def follow(self, reader: MessageReader) -> Mapping[str, Any]:
        """Deliver messages until all processes have ended; return the result's values.

        Raises:
            Exception: What `find_first` finds among the failures.
        """
        while any(child.poll() is None for child in self._children) and not self._has_failed():
            self._take(reader, timeout=_POLL_SECONDS)
        if self._has_failed():
            self._wait_for_words(reader)
            raise self._judge()
        self._drain(reader)
        if self._result is None:
            raise ProcessEnded(0, 0)
        return self._result

    def kill(self) -> None:
        """End all processes, and read what they said last."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
        for child in self._children:
            child.wait()
            if child.stdin is not None:
                child.stdin.close()
        for reader in self._readers:
            reader.join()

    def _has_failed(self) -> bool:
        return bool(self._failures) or any(child.poll() not in (None, 0) for child in self._children)

    def _wait_for_words(self, reader: MessageReader) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and any(child.poll() is None for child in self._children):
            self._take(reader, timeout=_POLL_SECONDS)
            if any(not failure.is_echo for failure in self._failures):
                break
        self._own_statuses = [child.poll() for child in self._children]
        self.kill()
        self._drain(reader)

    def _judge(self) -> Exception:
        told = {failure.rank for failure in self._failures}
        silent = [
            _explain_silence(rank, status)
            for rank, status in enumerate(self._own_statuses)
            if status not in (None, 0) and rank not in told
        ]
        return find_first([*self._failures, *silent]).error

    def _drain(self, reader: MessageReader) -> None:
        for thread in self._readers:
            thread.join()
        while not self._inbox.empty():
            self._take(reader, timeout=_POLL_SECONDS)

    def _take(self, reader: MessageReader, *, timeout: float) -> None:
        try:
            rank, kind, content = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return
        if kind == "result":
            self._result = content
        elif kind == "failure":
            self._failures.append(
                Failure(
                    rank=rank,
                    seconds=content["seconds"],
                    error=restore_error(content),
                    is_echo=content["is_echo"],
                )
            )
        else:
            reader.deliver(kind, content)


def _explain_silence(rank: int, status: int | None) -> Failure:
    """Return the failure of a process that ended by itself without a word."""
    error: Exception = ProcessEnded(rank, status or 0)
    if status == -signal.SIGKILL:
        # Nothing else on the machine kills a process of a job alone.
        error = MemoryError(f"{error}; the machine kills processes when its memory is used up")
    return Failure(rank=rank, seconds=0.0, error=error, is_echo=False)
