"""`python -m workers.job`: doing a job, repeating it by hand, dying with the worker."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.workers.job_folders import make_check_folder
from workers.job.result import read_result

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # No settings and no addresses: the server may be switched off.
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "workers.job", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_a_job_is_done_and_repeated(tmp_path: Path) -> None:
    folder = make_check_folder(tmp_path / "job")
    assert run(folder).returncode == 0
    first = read_result(folder)
    assert first is not None and first.values["ok"] is True

    again = run(folder)
    assert (again.returncode, "agrees with" in again.stdout) == (0, True), again.stderr
    assert read_result(folder / "replay-1") == first

    stored = json.loads((folder / "result.json").read_text())
    stored["values"]["ok"] = False
    (folder / "result.json").write_text(json.dumps(stored))
    differing = run(folder)
    assert differing.returncode == 1
    assert "values/ok: false before, true now" in differing.stdout
    assert (folder / "replay-2").is_dir()

    assert run(folder, "--in-place").returncode == 1
    assert read_result(folder) == first
    assert not (folder / "replay-3").exists()


def test_only_a_worker_gives_a_folder_that_outlives_attempts(tmp_path: Path) -> None:
    folder, kept = make_check_folder(tmp_path / "job"), tmp_path / "kept"
    (folder / "kept").mkdir()
    (folder / "kept" / "checkpoint").touch()
    kept.mkdir()
    (kept / "checkpoint").touch()
    # By hand: an empty one of its own, whatever lies there.
    assert run(folder).returncode == 0
    assert list((folder / "kept").iterdir()) == []
    # A repetition never sees the worker's.
    assert run(folder, "--kept", kept).returncode == 0
    assert list((folder / "replay-1" / "kept").iterdir()) == []
    (folder / "result.json").unlink()
    assert run(folder, "--kept", kept).returncode == 0
    assert [path.name for path in kept.iterdir()] == ["checkpoint"]


def test_a_folder_without_spec_is_wrong_usage(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert "spec.json" in done.stderr


def test_a_watching_process_ends_cleanly(tmp_path: Path) -> None:
    folder = make_check_folder(tmp_path / "job")
    command = [sys.executable, "-m", "workers.job", str(folder), "--watch-stdin"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as child:
        assert child.wait(timeout=60) == 0
        assert child.stderr is not None and "Fatal" not in child.stderr.read()


def test_a_failure_is_a_result(tmp_path: Path) -> None:
    folder = make_check_folder(tmp_path / "job")
    (folder / "inputs" / "base_model" / "config.json").write_text("{")
    assert run(folder).returncode == 1
    result = read_result(folder)
    assert result is not None and result.failure is not None
    assert (result.failure.failure_class, result.failure.code) == ("user", "base-model-invalid")


def test_the_process_loads_neither_django_nor_model_libraries_for_a_check(tmp_path: Path) -> None:
    folder = make_check_folder(tmp_path / "job")
    script = (
        "import sys; from workers.job.__main__ import main; code = main([sys.argv[1]]);"
        "bad = {'django', 'celery', 'torch', 'transformers'} & set(sys.modules); sys.exit(code or len(bad))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0


PARENT = """
import pathlib, sys, time
from workers.child import ChildProcess
folder = pathlib.Path(sys.argv[1])
child = ChildProcess(workdir=folder, log_path=folder / "child.log", project_root=pathlib.Path(sys.argv[2]))
import os, signal
os.kill(child.pid, signal.SIGSTOP)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_the_child_dies_with_a_killed_worker(tmp_path: Path) -> None:
    folder = make_check_folder(tmp_path / "job")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), str(ROOT)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + 20
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(pid)
    assert not (folder / "result.json").exists()


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
