"""`python -m training.engine.parallel.worker`: one of the processes that `run_in_processes` starts."""

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from training.engine.parallel.distributed import join_group
from training.engine.parallel.failures import describe_error
from training.engine.parallel.messages import MessageWriter
from training.engine.parallel.place import ProcessPlace
from training.engine.parallel.task import TrainingTask
from training.engine.trainer import run_training

EXIT_FAILED = 1

logger = logging.getLogger(__name__)


def main() -> int:
    """Do the task of the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path)
    parser.add_argument("place", type=json.loads)
    parser.add_argument("messages", type=int, help="descriptor to write messages to")
    options = parser.parse_args()
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    messages = MessageWriter(options.messages)
    try:
        _train(TrainingTask.read(options.task), ProcessPlace(**options.place), messages)
    except Exception as error:
        logger.exception("A process of the training failed.")
        _end_with(error, messages)
    return 0


def _train(task: TrainingTask, place: ProcessPlace, messages: MessageWriter) -> None:
    observers = [messages] if place.rank == 0 else []
    with join_group(place) as group:
        try:
            result = run_training(**task.arguments(), report=messages, observers=observers, group=group)
        except Exception as error:
            # Told before the group is left: leaving it lets the others fail, or waits for them.
            logger.exception("Process %s of the training failed.", place.rank)
            _end_with(error, messages)
    if place.rank == 0:
        messages.write("result", result.to_values())


def _end_with(error: Exception, messages: MessageWriter) -> NoReturn:
    messages.write("failure", {"seconds": time.monotonic(), **describe_error(error)})
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of a broken group may wait for ever.
    os._exit(EXIT_FAILED)


def _end_with_parent() -> None:
    """End this process when standard input closes, which it does when the starting process is gone."""
    # Not sys.stdin: its lock, held by a thread that waits, aborts the interpreter at its end.
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
