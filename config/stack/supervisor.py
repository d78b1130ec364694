"""The supervisor's life: prepare, start, watch, stop. It ends with every process of the stack gone."""

import http.client
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from urllib.parse import urlsplit

from config.stack.broker import is_broker_answering
from config.stack.layout import StackLayout
from config.stack.linux import adopt_orphans, die_with_parent, list_children
from config.stack.logs import rotate_logs, tail_lines
from config.stack.plan import open_listener, plan_broker, plan_servers, url_of
from config.stack.processes import ManagedProcess
from config.stack.state import StackState, kill_leftovers, read_state, remove_stale_files, write_state

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.2
BROKER_PATIENCE_SECONDS = 30.0
READY_PATIENCE_SECONDS = 120.0
PROBE_EVERY_SECONDS = 0.5
ROTATE_EVERY_SECONDS = 30.0


class StackFailed(Exception):
    """The stack cannot be started or kept running; the message says why and where to look."""


class Supervisor:
    """Runs one stack; the caller holds its lock.

    `tell` shows a line to the person who started the stack.
    """

    def __init__(self, *, layout: StackLayout, tell: Callable[[str], None]) -> None:
        self._layout = layout
        self._tell = tell
        self._processes: list[ManagedProcess] = []
        self._num_stop_signals = 0
        self._url = ""
        self._is_ready = False

    @property
    def url(self) -> str:
        """Address of the web process, known once it is listened on."""
        return self._url

    def run(self, *, on_ready: Callable[[dict[str, str]], None]) -> None:
        """Runs the stack until SIGINT or SIGTERM.

        Args:
            on_ready: Called once when everything answers, with what a person must be shown once.

        Raises:
            StackFailed: it did not get ready, or a process failed too often.
            OSError: the port is taken, or a folder cannot be written.
            BrokerUnavailable: the broker's binary is not installed.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        adopt_orphans()
        self._clear_leftovers()
        with open_listener(self._layout) as listener:
            self._url = url_of(listener)
            try:
                self._start_broker()
                shown = self._prepare()
                self._start([ManagedProcess(spec) for spec in plan_servers(self._layout, listener)])
                self._watch(lambda: on_ready(shown))
            finally:
                self._stop()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._num_stop_signals += 1

    def _clear_leftovers(self) -> None:
        state = read_state(self._layout)
        if state is not None:
            names = kill_leftovers(state)
            logger.warning(
                "A supervisor (pid %d) died before; killed after it: %s", state.pid, names or "nothing"
            )
        remove_stale_files(self._layout)

    def _start(self, processes: list[ManagedProcess]) -> None:
        for process in processes:
            process.start()
            self._processes.append(process)
            self._note()

    def _start_broker(self) -> None:
        if self._layout.broker_url is not None:
            return
        for folder in (self._layout.broker_dir, self._layout.broker_socket.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        broker = ManagedProcess(plan_broker(self._layout))
        self._start([broker])
        deadline = time.monotonic() + BROKER_PATIENCE_SECONDS
        while not is_broker_answering(self._layout.broker_socket):
            self._look()
            if broker.has_given_up or time.monotonic() > deadline:
                raise StackFailed(self._with_tail("The broker does not start.", broker))
            if self._num_stop_signals:
                return
            time.sleep(0.05)

    def _prepare(self) -> dict[str, str]:
        """Runs the set-up in a process of its own; returns what must be shown once."""
        command = [sys.executable, "-m", "django", "prepare_stack"]
        done = subprocess.run(
            [*command, "--token-file", str(self._layout.admin_token_path)],
            env=self._layout.child_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        if done.returncode:
            raise StackFailed("The set-up failed:\n" + "\n".join(done.stderr.splitlines()[-15:]))
        shown: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return shown

    def _watch(self, on_ready: Callable[[], None]) -> None:
        started_at = last_probe = last_rotation = time.monotonic()
        while not self._num_stop_signals:
            self._look()
            now = time.monotonic()
            if not self._is_ready and now - last_probe >= PROBE_EVERY_SECONDS:
                last_probe = now
                fault = probe_readiness(self._url)
                if fault is None:
                    self._is_ready = True
                    self._note()
                    on_ready()
                elif now - started_at > READY_PATIENCE_SECONDS:
                    raise StackFailed(
                        f"The stack did not get ready: {fault} Look into {self._layout.log_dir}."
                    )
            if now - last_rotation >= ROTATE_EVERY_SECONDS:
                last_rotation = now
                rotate_logs(self._layout.log_dir.glob("*.log"))
            time.sleep(TICK_SECONDS)

    def _look(self) -> None:
        """Collects what has ended and starts it again."""
        for process in self._processes:
            news = process.look()
            if news is not None:
                logger.warning(news)
                self._tell(news)
                self._note()
            if process.has_given_up:
                raise StackFailed(self._with_tail(f"{process.spec.name} fails again and again.", process))
        self._reap_adopted()

    def _stop(self) -> None:
        """Ends everything: first what uses the broker, then the broker, then whatever is left."""
        users = [process for process in self._processes if process.spec.name != "broker"]
        brokers = [process for process in self._processes if process.spec.name == "broker"]
        for group in (users, brokers):
            self._stop_group(group)
        self._kill_adopted()
        remove_stale_files(self._layout)

    def _stop_group(self, processes: list[ManagedProcess]) -> None:
        num_signals = self._num_stop_signals
        begun = time.monotonic()
        for process in processes:
            process.terminate()
        waiting = list(processes)
        # A second signal means: at once.
        while waiting and self._num_stop_signals <= max(num_signals, 1):
            now = time.monotonic()
            waiting = [
                process
                for process in waiting
                if now < begun + process.spec.grace_seconds and not process.wait(now + 0.05)
            ]
            self._reap_adopted()
        for process in processes:
            process.kill()

    def _reap_adopted(self) -> None:
        """Collects orphans that ended; without it they would stay as zombies."""
        own = {process.pid for process in self._processes}
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in own:
                return
            os.waitpid(ended.si_pid, 0)

    def _kill_adopted(self) -> None:
        """Kills orphans, and those that become orphans by it, until none is left."""
        while children := list_children(os.getpid()):
            for pid in children:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    continue

    def _note(self) -> None:
        identities = {process.spec.name: process.identity() for process in self._processes}
        state = StackState(
            pid=os.getpid(),
            url=self._url,
            is_ready=self._is_ready,
            processes={name: identity for name, identity in identities.items() if identity is not None},
        )
        write_state(self._layout, state)

    def _with_tail(self, message: str, process: ManagedProcess) -> str:
        return "\n".join(
            [f"{message} The end of {process.spec.log_path}:", *tail_lines(process.spec.log_path)]
        )


def probe_readiness(url: str) -> str | None:
    """Asks `/health/ready`; returns None when all is well, else what is amiss."""
    address = urlsplit(url)
    client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=3.0)
    try:
        client.request("GET", "/health/ready")
        response = client.getresponse()
        body = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"the web process does not answer ({error})."
    finally:
        client.close()
    if response.status == http.client.OK:
        return None
    return " ".join(check["detail"] for check in body.get("checks", {}).values() if not check["ok"])
