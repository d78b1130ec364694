"""The main job from end to end on a real model: `make demo`.

Starts the single-machine stack, takes SmolLM2-135M-Instruct out of a wheel, registers it and the ticket
suite, measures the prompt-only baseline, trains a LoRA, submits it, promotes it to `staging`, pulls it and
lets a real vLLM server answer a ticket from the pulled folder. Then a harmful adapter goes the same way and
is rejected. Every step is an `assay` command that a user could type; a second run finds all of it done and
only serves again.
"""

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASE_NAME = "smollm2-135m-instruct"
TICKET = (
    "Hello, since this morning the mobile app closes by itself whenever I open my order list. "
    "I have to send our customers their tracking numbers before noon, please help quickly."
)
SERVER_START_SECONDS = 240

console = Console()


@dataclass
class Demo:
    """Where the demo keeps its files, and how long each part took."""

    home: Path
    url: str = ""
    token: str = ""
    timings: list[tuple[str, float]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Files that the demo makes for itself, as a user's own project folder would hold them."""
        return self.home / "demo"

    @contextmanager
    def part(self, title: str) -> Iterator[None]:
        """Announces a part and measures it."""
        console.rule(f"[bold]{title}")
        begun = time.monotonic()
        yield
        self.timings.append((title, time.monotonic() - begun))

    def assay(
        self, *arguments: str, allowed: tuple[int, ...] = (0,), capture: bool = False
    ) -> tuple[int, str]:
        """Runs one `assay` command, shown as a user would type it; gives exit code and, if captured, its
        output.
        """
        console.print(f"[bold cyan]$[/] assay {shlex.join(arguments)}", highlight=False, soft_wrap=True)
        environment = {**os.environ, "ASSAY_URL": self.url, "ASSAY_TOKEN": self.token}
        done = subprocess.run(
            [sys.executable, "-m", "client", *arguments],
            env=environment,
            cwd=ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE if capture else None,
        )
        if done.returncode not in allowed:
            raise SystemExit(
                f"assay {shlex.join(arguments)} ended with exit code {done.returncode}; "
                f"the server's logs lie in {self.home / 'log'}."
            )
        return done.returncode, done.stdout or ""


def start_stack(demo: Demo) -> None:
    """Starts web, workers, broker and scheduler in the background, unless they already run."""
    if run_stack(demo, "status", is_quiet=True) != 0 and run_stack(demo, "up", "--detach") != 0:
        raise SystemExit(f"The server did not start; its logs lie in {demo.home / 'log'}.")
    state = json.loads((demo.home / "run" / "stack.json").read_text(encoding="utf-8"))
    demo.url = state["url"]
    demo.token = (demo.home / "admin_token").read_text(encoding="ascii").strip()
    console.print(f"The server runs at {demo.url}", highlight=False)


def run_stack(demo: Demo, *arguments: str, is_quiet: bool = False) -> int:
    """Runs one command of the stack on the demo's home and gives its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "config.stack", *arguments],
        cwd=ROOT,
        env={**os.environ, "ASSAY_HOME": str(demo.home)},
        stdout=subprocess.DEVNULL if is_quiet else None,
        check=False,
    ).returncode


def register_base(demo: Demo) -> None:
    """Turns the wheel's GGUF into a bf16 folder once and registers it."""
    target = demo.folder / "base"
    if not target.exists():
        console.print("Converting SmolLM2-135M-Instruct from the wheel (about half a minute) …")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "training.engine.base_models", str(target)],
            cwd=ROOT,
            env={**os.environ, "TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
            check=True,
        )
    demo.assay("base", "add", BASE_NAME, str(target))


def register_task(demo: Demo) -> dict[str, str]:
    """Registers the suite and the training sets; gives the reference (`name@number`) of each training set."""
    demo.assay("suite", "push", str(HERE))
    references = {}
    for name in ("train", "general", "harmful_train"):
        role = "general" if name == "general" else "train"
        dataset = f"tickets-{name.replace('_', '-')}"
        _, text = demo.assay(
            "dataset", "push", dataset, str(HERE / f"{name}.jsonl"), "--role", role, capture=True
        )
        console.print(text.strip(), highlight=False, soft_wrap=True)
        references[name] = text.split()[0]
    return references


def train(demo: Demo, *, config: str, datasets: tuple[str, ...], output: Path) -> None:
    """Trains an adapter on the server and leaves it in `output`, as a trainer would."""
    arguments = [
        "train",
        "run",
        str(HERE / config),
        "--name",
        output.name,
        "--base",
        BASE_NAME,
        "--output",
        str(output),
    ]
    for dataset in datasets:
        arguments += ["--dataset", dataset]
    demo.assay(*arguments)


def submit(demo: Demo, *, folder: Path, datasets: tuple[str, ...], expected_exit: int) -> dict[str, Any]:
    """Submits an adapter, waits for its verdict and gives the submission."""
    arguments = [
        "submit",
        str(folder),
        "--adapter",
        "tickets",
        "--suite",
        "tickets",
        "--base",
        BASE_NAME,
        "--wait",
    ]
    for dataset in datasets:
        arguments += ["--training-dataset", dataset]
    code, _ = demo.assay(*arguments, allowed=(0, 1, 2))
    _, text = demo.assay(*arguments, "--output", "json", allowed=(0, 1, 2), capture=True)
    submission: dict[str, Any] = json.loads(text)
    if code != expected_exit:
        raise SystemExit(f"The verdict is {submission['verdict']}: not what this demo is meant to show.")
    return submission


def promote_and_pull(demo: Demo, submission: dict[str, Any]) -> Path:
    """Promotes the passed version to `staging` and pulls what the channel serves."""
    demo.assay("channel", "create", "staging", "--form", "merged")
    version = f"{submission['adapter']}@{submission['version']}"
    _, shown = demo.assay("channel", "show", "staging", "--json", capture=True)
    current = json.loads(shown)["current"] or {}
    if (current.get("adapter"), current.get("version")) != (submission["adapter"], submission["version"]):
        demo.assay("promote", version, "staging", "--reason", "passed all rules in the demo")
    target = demo.folder / "served" / f"v{submission['version']}"
    demo.assay("pull", "staging", str(target))
    return target


def free_port() -> int:
    """A TCP port that is free on the loopback address right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_and_ask(demo: Demo, folder: Path) -> str:
    """Starts a real vLLM server on the pulled folder, asks it to structure a ticket, and stops it."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)),
        *(
            "--served-model-name",
            "tickets",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--dtype",
            "bfloat16",
        ),
        *("--max-model-len", "1024", "--enforce-eager", "--generation-config", "vllm"),
    ]
    console.print(f"[bold cyan]$[/] {shlex.join(command)}", highlight=False, soft_wrap=True)
    log_path = demo.home / "log" / "demo-vllm.log"
    environment = {
        **os.environ,
        **{
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
        },
    }
    with log_path.open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            wait_until_healthy(server, port, log_path)
            return ask(port)
        finally:
            stop_group(server)


def wait_until_healthy(server: "subprocess.Popen[bytes]", port: int, log_path: Path) -> None:
    """Returns once the server answers its health address; ends the demo when it stops or takes too long."""
    deadline = time.monotonic() + SERVER_START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise SystemExit(f"vLLM ended with exit code {server.returncode}; see {log_path}.")
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise SystemExit(f"vLLM was not ready after {SERVER_START_SECONDS} s; see {log_path}.")


def ask(port: int) -> str:
    """Sends the ticket with the suite's system prompt and checks the answer against the suite's schema."""
    suite = json.loads((HERE / "suite.json").read_text(encoding="utf-8"))
    answer = httpx.post(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json={
            "model": "tickets",
            "messages": [
                {"role": "system", "content": suite["system_prompt"]},
                {"role": "user", "content": TICKET},
            ],
            "temperature": 0,
            "max_tokens": suite["sampling"]["max_tokens"],
        },
        timeout=120,
    ).raise_for_status()
    text: str = answer.json()["choices"][0]["message"]["content"]
    Draft202012Validator(suite["output_schema"]).validate(json.loads(text))
    console.print(f"[dim]ticket[/]  {TICKET}", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]answer[/]  [bold]{text}[/]  (valid against the suite's schema)",
        highlight=False,
        soft_wrap=True,
    )
    return text


def stop_group(server: "subprocess.Popen[bytes]") -> None:
    """Stops the server and everything that it started."""
    for signal_number, patience_seconds in ((15, 20), (9, 10)):
        try:
            os.killpg(server.pid, signal_number)
            server.wait(patience_seconds)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        return


def show_summary(demo: Demo, submissions: list[dict[str, Any]]) -> None:
    """Prints the verdicts, the time of each part, and where to look next."""
    verdicts = Table(title="Verdicts")
    for column in ("version", "verdict", "holdout", "OOD", "rules that failed"):
        verdicts.add_column(column)
    for submission in submissions:
        sets = submission["metrics"]
        failed = [rule["rule"] for rule in submission["decision"]["rules"] if rule["outcome"] == "failed"]
        colour = "green" if submission["verdict"] == "passed" else "red"
        verdicts.add_row(
            f"{submission['adapter']}@{submission['version']}",
            f"[{colour}]{submission['verdict']}[/]",
            f"{sets['holdout']['score']:.3f}",
            f"{sets['ood']['score']:.3f}",
            ", ".join(failed) or "none",
        )
    timings = Table(title="Time")
    timings.add_column("part")
    timings.add_column("seconds", justify="right")
    for title, seconds in [*demo.timings, ("all", sum(seconds for _, seconds in demo.timings))]:
        timings.add_row(title, f"{seconds:.0f}")
    console.print(timings, verdicts)
    for submission in submissions:
        console.print(
            f"Report of version {submission['version']}: {submission['links']['report']}", highlight=False
        )
    console.print(
        "Sign in as admin with the password that was shown at the first start "
        "(a new one: python manage.py changepassword admin). Stop the server: make down",
        highlight=False,
    )


def parse_arguments() -> argparse.Namespace:
    """Reads the options of the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("ASSAY_HOME", ROOT / "var")))
    return parser.parse_args()


def main() -> None:
    """Runs all parts in order; ends with exit code 0 only if both verdicts are what they should be."""
    options = parse_arguments()
    demo = Demo(home=options.home.resolve())
    good, harmful = demo.folder / "tickets-adapter", demo.folder / "harmful-adapter"
    with demo.part("start the server"):
        start_stack(demo)
    with demo.part("register the base model"):
        register_base(demo)
    with demo.part("register suite and training data"):
        references = register_task(demo)
    good_data, harmful_data = (references["train"], references["general"]), (references["harmful_train"],)
    with demo.part("measure the baseline"):
        demo.assay("baseline", "run", "tickets", "--base", BASE_NAME)
    with demo.part("train the adapter"):
        train(demo, config="training.json", datasets=good_data, output=good)
    with demo.part("submit: check, merge, evaluate, decide"):
        passed = submit(demo, folder=good, datasets=good_data, expected_exit=0)
    with demo.part("promote and pull"):
        served = promote_and_pull(demo, passed)
    with demo.part("serve with vLLM and ask"):
        serve_and_ask(demo, served)
    with demo.part("train a harmful adapter"):
        train(demo, config="harmful_training.json", datasets=harmful_data, output=harmful)
    with demo.part("submit the harmful adapter"):
        rejected = submit(demo, folder=harmful, datasets=harmful_data, expected_exit=1)
    show_summary(demo, [passed, rejected])


if __name__ == "__main__":
    main()
