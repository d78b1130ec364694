"""Which processes a stack consists of."""

import socket
import sys
from collections.abc import Sequence

from config.stack.broker import broker_command
from config.stack.layout import StackLayout
from config.stack.processes import ProcessSpec

QUEUES = ("cpu", "accelerator")
WORKER_GRACE_SECONDS = 25.0
"""More than the ten seconds that a worker gives a job's process to end."""


def open_listener(layout: StackLayout) -> socket.socket:
    """Opens the port of the web processes.

    Raises:
        OSError: the address is taken or not this machine's.
    """
    family = socket.AF_INET6 if ":" in layout.host else socket.AF_INET
    listener = socket.create_server((layout.host, layout.port), family=family, backlog=512)
    listener.set_inheritable(True)
    return listener


def url_of(listener: socket.socket) -> str:
    """Returns the address that people and the command line use."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def plan_broker(layout: StackLayout) -> ProcessSpec:
    """Returns the embedded broker's process.

    Raises:
        BrokerUnavailable: its binary is not installed.
    """
    return ProcessSpec(
        name="broker",
        command=broker_command(layout),
        environment={"PATH": "/usr/bin:/bin"},
        log_path=layout.log_dir / "broker.log",
        grace_seconds=8.0,
    )


def plan_servers(layout: StackLayout, listener: socket.socket) -> list[ProcessSpec]:
    """Returns web processes, one worker for each queue, and the scheduler."""
    environment = layout.child_environment()

    def spec(name: str, command: Sequence[str], **options: float | tuple[int, ...]) -> ProcessSpec:
        return ProcessSpec(
            name=name,
            command=[sys.executable, *command],
            environment=environment,
            log_path=layout.log_dir / f"{name}.log",
            **options,  # type: ignore[arg-type]
        )

    descriptor = listener.fileno()
    webs = [
        spec(
            "web" if number == 0 else f"web-{number + 1}",
            ["-m", "config.stack.web", str(descriptor)],
            pass_fds=(descriptor,),
            grace_seconds=15.0,
        )
        for number in range(layout.web_processes)
    ]
    workers = [
        spec(f"worker-{queue}", _worker_command(queue), grace_seconds=WORKER_GRACE_SECONDS)
        for queue in QUEUES
    ]
    return [*webs, *workers, spec("scheduler", ["-m", "django", "run_scheduler"])]


def _worker_command(queue: str) -> list[str]:
    """The name is stable, so that a worker that is started again knows which jobs its predecessor was
    running.
    """
    return [
        *("-m", "celery", "-A", "config.celery", "worker"),
        *("--pool", "solo", "--queues", queue, "--hostname", f"{queue}@%h", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]
