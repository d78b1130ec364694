"""Runs phases: each engine lives in a process of its own, because GPU memory is not surely freed otherwise.

``run_phase`` is called by the evaluation; it starts ``python -m evaluation.engine.generation PHASE_DIR``,
passes its progress on and turns its end into a result or an ``EngineError`` with the end of its log. The
child must not outlive its parent: it ends when its standard input closes, and on Linux the kernel kills it
with the parent.
"""

import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from evaluation.engine.backends.base import AdapterSource, Backend, BackendConfig, BackendError
from evaluation.engine.errors import EngineError, FailureClass
from evaluation.engine.phase import (
    FAILURE_FILE,
    LOG_FILE,
    OUTPUTS_FILE,
    PhaseResult,
    PhaseSpec,
    read_phase,
    read_phase_outputs,
    write_json_atomically,
    write_phase,
    write_phase_outputs,
)
from evaluation.engine.progress import ProgressReporter

LOG_TAIL_LINES: Final = 40
LOG_TAIL_BYTES: Final = 16 * 1024

OUT_OF_MEMORY_SIGNS: Final = (
    "out of memory",
    "OutOfMemoryError",
    "MemoryError",
    "can't allocate memory",
    "Cannot allocate memory",
    "No available memory for the cache blocks",
    "Free memory on device",
)
"""What torch, vLLM and the C library write when memory runs out."""

_EXIT_REFUSED: Final = 3
_PR_SET_PDEATHSIG: Final = 1


def run_phase(folder: Path, spec: PhaseSpec, report: ProgressReporter) -> PhaseResult:
    """Run one phase in a process of its own and wait for it.

    Args:
        folder: Made for the phase; keeps requests, outputs and the engine's log.
        spec: The model and the requests.
        report: Gets the engine's progress as fractions of this phase.

    Raises:
        EngineError: The engine could not be started, refused a request, crashed or was killed.
    """
    write_phase(folder, spec)
    for stale in (OUTPUTS_FILE, FAILURE_FILE):
        (folder / stale).unlink(missing_ok=True)
    with (folder / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "evaluation.engine.generation", str(folder.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_child_environment(),
            text=True,
        )
        try:
            _follow(process, report)
            exit_code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
    if exit_code != 0 or not (folder / OUTPUTS_FILE).is_file():
        raise engine_failure(folder, exit_code)
    return read_phase_outputs(folder)


def engine_failure(folder: Path, exit_code: int) -> EngineError:
    """Classify the end of an engine process from its exit status, ``failure.json`` and log.

    Args:
        folder: The phase's folder.
        exit_code: As in ``subprocess``: negative for a signal.
    """
    tail = _log_tail(folder / LOG_FILE)
    code, message, failure_class = _classify(folder, exit_code, tail)
    return EngineError(code, message, failure_class=failure_class, exit_code=exit_code, log_tail=tail)


def load_backend(model: Path, adapter: AdapterSource | None, config: BackendConfig) -> Backend:
    """Load a model into the configured engine, in this process."""
    # The engines take long to import and exclude each other's environments, so only the one that is asked
    # for is.
    if config.name == "vllm":
        from evaluation.engine.backends.vllm import VllmBackend

        return VllmBackend(model, adapter, config)
    from evaluation.engine.backends.transformers import TransformersBackend

    return TransformersBackend(model, adapter, config)


def main(arguments: list[str]) -> int:
    """Run one phase in this process; the entry point of the child.

    Args:
        arguments: The phase's folder.

    Returns:
        0 when the outputs were written, ``_EXIT_REFUSED`` when the backend refused (see ``failure.json``).
    """
    folder = Path(arguments[0])
    _end_with_parent()
    progress_stream = _claim_standard_output()
    try:
        _run_in_this_process(folder, progress_stream)
    except BackendError as error:
        write_json_atomically(folder / FAILURE_FILE, {"code": error.code, "message": str(error)})
        return _EXIT_REFUSED
    return 0


def _run_in_this_process(folder: Path, progress_stream: TextIO) -> None:
    spec = read_phase(folder)
    os.environ.update(_engine_environment(spec.backend))

    def tell(fraction: float, message: str) -> None:
        progress_stream.write(json.dumps({"fraction": fraction, "message": message}) + "\n")
        progress_stream.flush()

    started = time.monotonic()
    tell(0.0, "loading the model")
    backend = load_backend(spec.model, spec.adapter, spec.backend)
    loaded = time.monotonic()
    tell(0.1, "generating")
    num_requests = max(len(spec.generations) + len(spec.continuations), 1)
    share = 0.9 * len(spec.generations) / num_requests
    generations = backend.generate(
        spec.generations, lambda done, text: tell(0.1 + share * done, f"outputs {text}")
    )
    generated = time.monotonic()
    continuations = backend.score(
        spec.continuations, lambda done, text: tell(0.1 + share + (0.9 - share) * done, f"options {text}")
    )
    scored = time.monotonic()
    timing = {
        "load_seconds": round(loaded - started, 3),
        "generate_seconds": round(generated - loaded, 3),
        "score_seconds": round(scored - generated, 3),
        "num_output_tokens": sum(len(output.token_ids) for output in generations),
    }
    engine = {"schema_version": 1, "fingerprint": backend.fingerprint(), "timing": timing}
    write_phase_outputs(folder, generations, continuations, engine)
    tell(1.0, "done")


def _follow(process: "subprocess.Popen[str]", report: ProgressReporter) -> None:
    for line in process.stdout or ():
        try:
            event = json.loads(line)
            report.progress(float(event["fraction"]), str(event["message"]))
        except (ValueError, KeyError, TypeError):
            report.log("warning", f"unexpected line from the engine: {line.rstrip()[:200]}")


def _child_environment() -> dict[str, str]:
    """Return the caller's environment, in which the child finds this package wherever it was started."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not path else os.pathsep.join((root, path))}


def _engine_environment(config: BackendConfig) -> dict[str, str]:
    """Return what the engines read when they are imported; nothing is fetched and nothing is sent."""
    return {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # In one process scheduling is deterministic and loading quicker; tensor parallelism needs several.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1" if config.tensor_parallel_size > 1 else "0",
        "VLLM_CPU_KVCACHE_SPACE": str(config.cpu_kv_cache_gib),
    }


def _classify(folder: Path, exit_code: int, tail: str) -> tuple[str, str, FailureClass]:
    failure = _read_failure(folder / FAILURE_FILE)
    if failure is not None:
        return failure["code"], failure["message"], "user"
    if any(sign in tail for sign in OUT_OF_MEMORY_SIGNS):
        return (
            "engine-out-of-memory",
            "the engine ran out of memory: lower max_model_len, max_num_seqs or the KV cache, "
            "or use a larger machine",
            "infrastructure",
        )
    if exit_code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return (
            "engine-killed",
            "the engine was killed, most likely because the machine ran out of memory",
            "infrastructure",
        )
    if exit_code in (-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT):
        return "engine-stopped", "the engine was told to stop", "infrastructure"
    if exit_code < 0:
        return "engine-crashed", f"the engine crashed with {_signal_name(-exit_code)}", "infrastructure"
    if exit_code == 0:
        return "engine-no-output", "the engine ended without writing its outputs", "internal"
    last = next((line for line in reversed(tail.splitlines()) if line.strip()), "no message")
    return "engine-failed", f"the engine ended with exit status {exit_code}: {last[:500]}", "internal"


def _read_failure(path: Path) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    failure: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return failure


def _log_tail(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - LOG_TAIL_BYTES, 0))
        text = stream.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _claim_standard_output() -> TextIO:
    """Keep standard output for progress lines alone; what libraries print goes to the log."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def _end_with_parent() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before the request was in place.
            os._exit(1)
    # Only the parent's pipe means anything: by hand, standard input may be /dev/null or a terminal.
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_exit_when_input_closes, daemon=True).start()


def _exit_when_input_closes() -> None:
    # Raw reads: the buffered reader's lock would keep the interpreter from shutting down while this thread
    # waits.
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
