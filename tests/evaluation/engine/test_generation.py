import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from evaluation.engine.backends.base import BackendConfig, GenerationRequest
from evaluation.engine.errors import EngineError
from evaluation.engine.generation import engine_failure, run_phase
from evaluation.engine.phase import FAILURE_FILE, LOG_FILE, OUTPUTS_FILE, PhaseSpec, write_phase
from evaluation.engine.progress import SilentReporter
from tests.fixtures.models import random_llama

CONFIG = BackendConfig(name="transformers", max_model_len=64, max_num_seqs=4)


class Recorder:
    def __init__(self) -> None:
        self.fractions: list[float] = []

    def progress(self, fraction: float, message: str) -> None:
        self.fractions.append(fraction)

    def log(self, level: str, message: str) -> None:
        raise AssertionError(message)

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        raise AssertionError(values)


def spec(model: Path, num_tokens: int = 4) -> PhaseSpec:
    request = GenerationRequest(
        request_id="a", prompt_token_ids=(1,) * num_tokens, max_tokens=3, stop_token_ids=(2,)
    )
    return PhaseSpec(model=model, adapter=None, backend=CONFIG, generations=(request,), continuations=())


def test_a_phase_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    report = Recorder()
    result = run_phase(tmp_path, spec(random_llama()), report)
    assert result.generations["a"].num_prompt_tokens == 4
    assert result.fingerprint["backend"] == "transformers"
    assert result.timing["num_output_tokens"] == len(result.generations["a"].token_ids)
    assert report.fractions == sorted(report.fractions)
    assert (report.fractions[0], report.fractions[-1]) == (0.0, 1.0)


def test_what_a_backend_refuses_is_the_users_fault(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as error:
        run_phase(tmp_path, spec(random_llama(), num_tokens=70), SilentReporter())
    assert (error.value.code, error.value.failure_class) == ("prompt-too-long", "user")


def test_a_failure_carries_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as error:
        run_phase(tmp_path / "phase", spec(tmp_path / "no-model"), SilentReporter())
    assert (error.value.code, error.value.failure_class) == ("engine-failed", "internal")
    assert "Traceback" in error.value.log_tail
    assert error.value.to_json()["details"][0]["code"] == "engine-log"


@pytest.mark.parametrize(
    ("exit_code", "log", "code", "failure_class"),
    [
        (-9, "", "engine-killed", "infrastructure"),
        (137, "", "engine-killed", "infrastructure"),
        (-11, "", "engine-crashed", "infrastructure"),
        (-15, "", "engine-stopped", "infrastructure"),
        (1, "torch.OutOfMemoryError: CUDA out of memory.", "engine-out-of-memory", "infrastructure"),
        (1, "DefaultCPUAllocator: can't allocate memory", "engine-out-of-memory", "infrastructure"),
        (1, "KeyError: 'x'", "engine-failed", "internal"),
        (0, "", "engine-no-output", "internal"),
    ],
)
def test_ends_are_classified(tmp_path: Path, exit_code: int, log: str, code: str, failure_class: str) -> None:
    (tmp_path / LOG_FILE).write_text(log)
    failure = engine_failure(tmp_path, exit_code)
    assert (failure.code, failure.failure_class, failure.exit_code) == (code, failure_class, exit_code)


def test_a_written_failure_wins(tmp_path: Path) -> None:
    (tmp_path / FAILURE_FILE).write_text('{"code": "adapter-rank-too-high", "message": "m"}')
    failure = engine_failure(tmp_path, 3)
    assert (failure.code, failure.failure_class, failure.message) == ("adapter-rank-too-high", "user", "m")


def test_a_child_ends_when_its_input_closes(tmp_path: Path) -> None:
    write_phase(tmp_path, spec(random_llama()))
    with subprocess.Popen(
        [sys.executable, "-m", "evaluation.engine.generation", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(timeout=60) == 1
    assert not (tmp_path / OUTPUTS_FILE).exists()


PARENT = """
import sys
from pathlib import Path
from evaluation.engine.generation import run_phase
from evaluation.engine.phase import read_phase
from evaluation.engine.progress import SilentReporter
run_phase(Path(sys.argv[1]), read_phase(Path(sys.argv[1])), SilentReporter())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    write_phase(tmp_path, spec(random_llama()))
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)]) as parent:
        child = wait_for_child(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait(timeout=10)
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def wait_for_child(pid: int) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError("the parent started no engine")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
