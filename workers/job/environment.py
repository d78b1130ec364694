"""The environment of the job process, set before any model library is loaded."""

import os
import signal
import threading
from pathlib import Path

_OFFLINE = {
    # A job reads its inputs and nothing else: what it needs is in its folder.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def prepare_environment(*, num_threads: int | None) -> None:
    """Takes the process off the network's registries and sets the number of arithmetic threads.

    Args:
        num_threads: None leaves the choice to the libraries.
    """
    os.environ.update(_OFFLINE)
    # How long a thread spins before it sleeps. Spinning without end starves others where jobs and servers
    # share few cores (a merge of SmolLM2 took 98 s on two busy cores, else 5 s); sleeping at once wastes the
    # second core of a quiet machine (training: 235 tokens/s, with this bound 339).
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    if num_threads is not None:
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(num_threads)))


def die_with_parent() -> None:
    """Ends the whole process group when standard input closes, which it does when the worker is gone.

    The worker made the group for this job alone, so the group holds the processes that this one started, too.
    """
    threading.Thread(target=_wait_for_end_of_input, name="parent-watch", daemon=True).start()


def _wait_for_end_of_input() -> None:
    # Not sys.stdin: its lock, held by a thread that waits, aborts the interpreter at its end.
    while os.read(0, 1):
        continue
    os.killpg(os.getpgid(0), signal.SIGKILL)


def leave_standard_input() -> None:
    """Points standard input at nothing, so that no library waits for a person."""
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
