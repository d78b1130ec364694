"""Processes that treat batches of a pass at the same time; what comes of them is the same as without them.

They read their batches from the file themselves and answer with lines and counts. Each holds one batch at a
time and, where languages are told apart, language models of its own (some 250 MB). None outlives this
process: a worker ends when its connection does, which the system closes even for a process that was killed.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from training.engine.data.cleaning.batches import Batch, Counts, TreatedBatch, Treatment

# Not forked: a copy of a process with threads may wait for ever for what another thread held.
_CONTEXT = multiprocessing.get_context("spawn")

Answer = tuple[TreatedBatch, list[Counts]]


class _Worker:
    """One process and its end of the connection."""

    def __init__(self) -> None:
        self._connection, other_end = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(other_end,), daemon=True)
        self._process.start()
        other_end.close()
        self.is_alive = True

    def send(self, message: Treatment | Batch) -> None:
        try:
            self._connection.send(message)
        except OSError:
            self.is_alive = False

    def receive(self) -> Answer | None:
        """Return what became of the batch; None when the worker failed at it or is gone."""
        try:
            answer: Answer | None = self._connection.recv() if self.is_alive else None
        except (EOFError, OSError):
            self.is_alive = False
            return None
        return answer

    def end(self) -> None:
        self._connection.close()
        self._process.join()


class Workers:
    """Some worker processes, started when they are first needed.

    Args:
        num_workers: At least one.
    """

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the processes, whose memory is free then; others are started when they are needed again."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def treat_all(self, treatment: Treatment, batches: Iterable[Batch]) -> Iterator[TreatedBatch]:
        """Treat batches with copies of the steps, and add what these counted to the steps.

        Args:
            treatment: All of its steps are local, and its observer observes locally.
            batches: Treated in any order.

        Yields:
            What became of each batch, in their order.
        """
        self._workers = self._workers or [_Worker() for _ in range(self._num_workers)]
        waiting = iter(batches)
        given: deque[tuple[_Worker, Batch]] = deque()

        def give(worker: _Worker) -> None:
            # One batch at a time: two that write to each other at once could wait for each other for ever.
            if worker.is_alive and (batch := next(waiting, None)) is not None:
                worker.send(batch)
                given.append((worker, batch))

        for worker in self._workers:
            worker.send(treatment)
            give(worker)
        while given:
            worker, batch = given.popleft()
            answer = worker.receive()
            give(worker)
            yield _take(treatment, batch, answer)
        for batch in waiting:
            yield treatment.treat(batch)


def _take(treatment: Treatment, batch: Batch, answer: Answer | None) -> TreatedBatch:
    if answer is None:
        # Here the fault, if it is one of the data, is met again and told as without workers.
        return treatment.treat(batch)
    treated, counts = answer
    treatment.add_counts(counts)
    return treated


def _serve(connection: Connection) -> None:
    # An interrupt from the terminal reaches all processes; the main one then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        treatment: Treatment = connection.recv()
        while True:
            message: Treatment | Batch = connection.recv()
            if isinstance(message, Treatment):
                treatment = message
            else:
                connection.send(_try(treatment, message))
    except (EOFError, OSError):
        return


def _try(treatment: Treatment, batch: Batch) -> Answer | None:
    try:
        return treatment.treat_apart(batch)
    except Exception:  # noqa: BLE001 (whatever it is: the main process meets it again and tells it)
        return None
