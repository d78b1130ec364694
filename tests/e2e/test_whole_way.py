"""From a registered base model to a pulled folder, on the real model, real vLLM and real processes.

Few training steps and small sets: what is shown is that every step works and that killing a worker in the
middle of an evaluation changes nothing, not that the adapter is any good.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.mini_task import LENIENT_POLICY, NUM_CANARIES, write_mini_task
from tests.fixtures.models import smollm2
from tests.fixtures.stack import Stack, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
PATIENCE_SECONDS = 600.0


class Client:
    """Types `assay` commands as a person or a CI job would."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.url = stack.state()["url"]
        self.token = (stack.home / "admin_token").read_text(encoding="ascii").strip()

    def assay(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "client", *arguments],
            env={**self.stack.environment, "ASSAY_URL": self.url, "ASSAY_TOKEN": self.token},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode in expected, f"{arguments}\n{done.stdout}\n{done.stderr}\n{self.stack.logs()}"
        return done

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = httpx.request(
            method,
            f"{self.url}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
        )
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(tmp_path_factory.mktemp("home"))
    running.up()
    yield running
    running.command("config.stack", "stop")
    for pid in running.processes():
        os.kill(pid, signal.SIGKILL)


def test_the_whole_way(stack: Stack, tmp_path: Path) -> None:
    client = Client(stack)
    adapter = _register_and_train(client, tmp_path)
    submission = _submit_and_kill_the_worker(client, adapter)
    assert (submission["state"], submission["verdict"]) == ("passed", "passed")
    outcomes = {rule["rule"]: rule["outcome"] for rule in submission["decision"]["rules"]}
    assert {rule for rule, outcome in outcomes.items() if outcome == "passed"} == {"leakage", "evidence"}
    assert set(outcomes.values()) == {"passed", "skipped"}
    forms = [
        row["form"]
        for row in client.call("GET", f"/submissions/{submission['id']}/examples?role=canary")["results"]
    ]
    assert sorted(forms) == ["adapter"] * NUM_CANARIES + ["merged"] * NUM_CANARIES

    _assert_decision_recomputes(client, submission)
    _promote_and_pull(client, submission, tmp_path / "served")
    _assert_default_policy_is_not_fooled(client, adapter)

    workdirs = _work_folders_of(client, submission)
    stack.stop()
    for kind in ("check", "merge", "train", "evaluate"):
        _assert_replay_agrees(stack, workdirs[kind])


def _register_and_train(client: Client, tmp_path: Path) -> Path:
    task = write_mini_task(tmp_path / "task")
    client.assay("base", "add", "smollm2", str(smollm2()))
    client.assay("suite", "push", str(task))
    client.assay("dataset", "push", "mini-train", str(task / "train.jsonl"), "--role", "train")
    client.call("POST", "/policies", {"definition": LENIENT_POLICY})
    adapter = tmp_path / "adapter"
    client.assay(
        "train", "run", str(task / "training.json"), "--name", "mini", "--dataset", "mini-train@1",
        "--output", str(adapter)
    )  # fmt: skip
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {path.name for path in adapter.iterdir()}
    return adapter


def _submit(client: Client, adapter: Path, *options: str, expected: tuple[int, ...]) -> dict[str, Any]:
    done = client.assay(
        *("submit", str(adapter), "--adapter", "mini", "--suite", "tickets-mini"),
        *("--training-dataset", "mini-train@1", "--output", "json", *options),
        expected=expected,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _submit_and_kill_the_worker(client: Client, adapter: Path) -> dict[str, Any]:
    """Submits, kills the worker while it evaluates the candidate, and waits for the verdict."""
    first = _submit(client, adapter, "--policy", "mini", expected=(0,))

    def evaluating() -> bool:
        running = client.call("GET", "/jobs?kind=evaluate&state=running")["results"]
        return any(job["subject"].startswith("mini@1") and job["fraction"] > 0 for job in running)

    wait_for(evaluating, "the candidate's evaluation", patience_seconds=PATIENCE_SECONDS)
    os.kill(client.stack.pid("worker-accelerator"), signal.SIGKILL)
    client.assay("wait", first["id"])
    shown = client.call("GET", f"/submissions/{first['id']}")
    jobs = client.call("GET", "/jobs?kind=evaluate")["results"]
    attempts = {job["subject"].split()[0]: job["attempt"] for job in jobs}
    assert attempts == {"smollm2": 1, "mini@1": 2}, "the killed attempt was taken up again"
    return shown


def _assert_decision_recomputes(client: Client, submission: dict[str, Any]) -> None:
    decision = submission["decision"]
    again = client.call("POST", f"/decisions/{decision['id']}/recompute")
    assert again["is_equal"] is True


def _assert_default_policy_is_not_fooled(client: Client, adapter: Path) -> None:
    """Eight examples are no evidence: the same outputs, looked up and not made again, cannot pass."""
    submission = _submit(client, adapter, "--policy", "default", "--wait", expected=(1, 2))
    outcomes = {rule["rule"]: rule["outcome"] for rule in submission["decision"]["rules"]}
    assert outcomes["evidence"] == "inconclusive"
    assert len([job for job in client.call("GET", "/jobs?kind=evaluate")["results"]]) == 2


def _promote_and_pull(client: Client, submission: dict[str, Any], target: Path) -> None:
    client.assay("channel", "create", "staging", "--form", "merged")
    version = f"{submission['adapter']}@{submission['version']}"
    client.assay("promote", submission["id"], "staging", "--reason", f"the whole way of {version}")
    client.assay("pull", "staging", str(target))
    manifest = client.call("GET", "/channels/staging/manifest")
    assert manifest["artifact"] == submission["merged_artifact"]
    for file in manifest["files"]:
        assert (target / file["path"]).stat().st_size == file["size_bytes"]
    assert not (target / "adapter_config.json").exists()


def _work_folders_of(client: Client, submission: dict[str, Any]) -> dict[str, Path]:
    """The work folder of the newest succeeded job of each kind."""
    folders: dict[str, Path] = {}
    for job in reversed(client.call("GET", "/jobs")["results"]):
        attempts = sorted((client.stack.home / "work" / job["id"]).iterdir())
        folders[job["kind"]] = attempts[-1]
    return folders


def _assert_replay_agrees(stack: Stack, folder: Path) -> None:
    done = stack.command("workers.job", str(folder))
    assert done.returncode == 0, f"{folder}\n{done.stdout}\n{done.stderr}"
