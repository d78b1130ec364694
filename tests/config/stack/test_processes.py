"""Starting again, giving up, stopping: on small real processes."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.stack import processes
from config.stack.broker import find_server_binary
from config.stack.layout import StackLayout
from config.stack.linux import list_children, read_start_time
from config.stack.logs import rotate_logs, tail_lines
from config.stack.plan import open_listener, url_of
from config.stack.processes import MAX_FAILURES, ManagedProcess, ProcessSpec
from config.stack.state import (
    StackLock,
    StackState,
    is_stack_running,
    kill_leftovers,
    read_state,
    write_state,
)


def managed(tmp_path: Path, program: str) -> ManagedProcess:
    return ManagedProcess(
        ProcessSpec(
            name="thing",
            command=[sys.executable, "-c", program],
            environment=dict(os.environ),
            log_path=tmp_path / "thing.log",
        )
    )


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def look_until(process: ManagedProcess, condition: Callable[[], object]) -> list[str]:
    """Looks again and again; returns what was told."""
    told: list[str] = []

    def look() -> object:
        news = process.look()
        if news is not None:
            told.append(news)
        return condition()

    wait_for(look)
    return told


def layout(home: Path, *, host: str = "127.0.0.1") -> StackLayout:
    made = StackLayout(home=home, host=host, port=0, web_processes=1, broker_url=None)
    made.run_dir.mkdir(parents=True, exist_ok=True)
    return made


def test_a_process_that_dies_is_started_again(tmp_path: Path) -> None:
    process = managed(tmp_path, "import time; time.sleep(60)")
    process.start()
    first = process.pid
    assert first is not None and process.look() is None
    os.kill(first, signal.SIGKILL)
    told = look_until(process, lambda: process.pid not in (None, first))
    assert "SIGKILL" in told[0] and "started again" in told[1]
    process.kill()


def test_a_process_that_always_fails_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_BACKOFF_SECONDS", 0.0)
    process = managed(tmp_path, "import sys; sys.exit('no way')")
    process.start()
    told = look_until(process, lambda: process.has_given_up)
    assert len([line for line in told if "ended with status 1" in line]) == MAX_FAILURES
    assert tail_lines(tmp_path / "thing.log") == ["no way"] * MAX_FAILURES


def test_killing_takes_the_whole_group(tmp_path: Path) -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = managed(tmp_path, program)
    process.start()
    pid = process.pid
    assert pid is not None
    wait_for(lambda: list_children(pid))
    (grandchild,) = list_children(pid)
    process.kill()
    wait_for(lambda: read_start_time(grandchild) is None)


def test_only_one_holds_the_lock(tmp_path: Path) -> None:
    stack = layout(tmp_path)
    first, second = StackLock(stack), StackLock(stack)
    assert not is_stack_running(stack)
    assert first.acquire() and not second.acquire()
    assert is_stack_running(stack)
    first.release()
    assert second.acquire()
    second.release()


def test_leftovers_are_killed_and_strangers_are_not(tmp_path: Path) -> None:
    stack = layout(tmp_path)
    left, stranger = (managed(tmp_path, "import time; time.sleep(60)") for _ in range(2))
    left.start()
    stranger.start()
    identity, other = left.identity(), stranger.identity()
    assert identity is not None and other is not None
    # The number of a dead process was given to another one: its start time tells.
    reused = {"pid": other["pid"], "start_time": other["start_time"] - 1}
    write_state(stack, StackState(pid=1, url="", is_ready=True, processes={"left": identity, "web": reused}))
    state = read_state(stack)
    assert state is not None
    assert kill_leftovers(state) == ["left"]
    assert read_start_time(identity["pid"]) is None
    assert read_start_time(other["pid"]) is not None
    left.kill()
    stranger.kill()


def test_a_note_that_cannot_be_read_is_no_note(tmp_path: Path) -> None:
    stack = layout(tmp_path)
    assert read_state(stack) is None
    stack.state_path.write_text("{", encoding="utf-8")
    assert read_state(stack) is None


def test_the_port_is_refused_at_once_when_it_is_taken(tmp_path: Path) -> None:
    with open_listener(layout(tmp_path)) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        taken = StackLayout(home=tmp_path, host="127.0.0.1", port=port, web_processes=1, broker_url=None)
        with pytest.raises(OSError, match="in use"):
            open_listener(taken)


def test_a_socket_path_that_is_too_long_is_replaced(tmp_path: Path) -> None:
    short, long = layout(tmp_path / "a"), layout(tmp_path / ("b" * 120))
    assert short.broker_socket == short.run_dir / "redis.sock"
    assert len(os.fsencode(long.broker_socket)) <= 100
    assert long.broker_socket != layout(tmp_path / ("c" * 120)).broker_socket


def test_the_broker_is_found_in_its_wheel() -> None:
    assert find_server_binary().name == "valkey-server"


def test_logs_are_cut_when_they_have_grown(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    with path.open("a", encoding="utf-8") as log:
        log.write("old\n" * 100)
        log.flush()
        rotate_logs([path], max_bytes=100)
        log.write("new\n")
        log.flush()
    assert path.read_text() == "new\n"
    assert (tmp_path / "web.log.1").read_text() == "old\n" * 100


def test_an_address_for_every_interface_is_shown_as_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:  # noqa: S104 - for a moment
        assert url_of(listener).startswith("http://127.0.0.1:")
