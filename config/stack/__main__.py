"""`python -m config.stack up|status|stop`: the command line of the embedded stack."""

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from config.env import EnvError
from config.stack.broker import BrokerUnavailable
from config.stack.layout import StackLayout, read_layout
from config.stack.linux import read_start_time
from config.stack.state import StackLock, is_stack_running, read_state
from config.stack.supervisor import StackFailed, Supervisor, probe_readiness

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
STOP_PATIENCE_SECONDS = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line says; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        layout = read_layout()
    except EnvError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    match options.command:
        case "up" if options.detach:
            return _up_detached()
        case "up":
            return _up(layout, is_background=options.background)
        case "stop":
            return _stop(layout)
    return _status(layout)


def _up(layout: StackLayout, *, is_background: bool) -> int:
    """Runs the stack in this process; in the background it says no more once it is ready."""
    for folder in (layout.home, layout.run_dir, layout.log_dir):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    logging.basicConfig(
        filename=layout.log_dir / "stack.log",
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    lock = StackLock(layout)
    if not lock.acquire():
        state = read_state(layout)
        who = "by another process" if state is None else f"by process {state.pid} at {state.url}"
        _tell(f"The stack of {layout.home} is run {who} already. Stop it first: python -m config.stack stop")
        return EXIT_FAILED
    _tell(f"Starting Assay in {layout.home} …")
    supervisor = Supervisor(layout=layout, tell=_tell)

    def announce(shown: dict[str, str]) -> None:
        _announce(layout, supervisor.url, shown, is_background=is_background)

    try:
        supervisor.run(on_ready=announce)
    except (StackFailed, BrokerUnavailable) as error:
        logging.getLogger(__name__).error("%s", error)
        _tell(str(error))
        return EXIT_FAILED
    except OSError as error:
        _tell(f"The stack cannot be started on {layout.host}:{layout.port} in {layout.home}: {error}")
        return EXIT_FAILED
    finally:
        lock.release()
    _tell("Assay has stopped.")
    return EXIT_OK


def _up_detached() -> int:
    """Starts the stack in a process of its own and returns when it is ready, or has failed."""
    child = subprocess.Popen(
        [sys.executable, "-m", "config.stack", "up", "--background"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    for line in child.stdout or ():
        sys.stdout.write(line)
        sys.stdout.flush()
    # The output ends when the stack is ready and lets go of it, or when it is over.
    try:
        return child.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return EXIT_OK


def _stop(layout: StackLayout) -> int:
    """Asks the supervisor to end and waits for it."""
    state = read_state(layout)
    if not is_stack_running(layout) or state is None:
        _tell(f"No stack is running in {layout.home}.")
        return EXIT_OK
    start_time = read_start_time(state.pid)
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_PATIENCE_SECONDS
    while read_start_time(state.pid) == start_time and start_time is not None:
        if time.monotonic() > deadline:
            _tell(f"Process {state.pid} does not end; see {layout.log_dir}/stack.log.")
            return EXIT_FAILED
        time.sleep(0.1)
    _tell("Assay has stopped.")
    return EXIT_OK


def _status(layout: StackLayout) -> int:
    """Says what is running; status 0 only when the stack is ready."""
    state = read_state(layout)
    if not is_stack_running(layout) or state is None:
        _tell(f"No stack is running in {layout.home}.")
        return EXIT_FAILED
    _tell(f"{state.url} (supervisor: process {state.pid})")
    for name, identity in state.processes.items():
        is_alive = read_start_time(identity["pid"]) == identity["start_time"]
        _tell(f"  {name:20} process {identity['pid']:<8} {'running' if is_alive else 'not running'}")
    fault = probe_readiness(state.url)
    _tell("Ready." if fault is None else f"Not ready: {fault}")
    return EXIT_OK if fault is None else EXIT_FAILED


def _announce(layout: StackLayout, url: str, shown: dict[str, str], *, is_background: bool) -> None:
    _tell(f"Assay is ready at {url}")
    _tell(f"  Admin pages  {url}/admin/")
    _tell(f"  API          {url}/api/v1/docs")
    _tell(f"  Logs         {layout.log_dir}")
    if "admin_password" in shown:
        _tell(f"  Sign in as   {shown['admin_user']}, password {shown['admin_password']} (shown this once)")
    if "admin_token" in shown:
        _tell(f"  API token    {shown['admin_token']} (shown this once, kept in {layout.admin_token_path})")
    if is_background:
        _let_go_of_output()
    else:
        _tell("Stop it with Ctrl-C.")


def _let_go_of_output() -> None:
    sys.stdout.flush()
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)


def _tell(line: str) -> None:
    # The terminal may be gone; the stack's own end must not depend on it.
    with contextlib.suppress(OSError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m config.stack", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start everything and stay until Ctrl-C")
    up.add_argument("--detach", action="store_true", help="return when the stack is ready; it runs on")
    up.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    commands.add_parser("status", help="say what is running")
    commands.add_parser("stop", help="stop a running stack")
    return parser


if __name__ == "__main__":
    sys.exit(main())
