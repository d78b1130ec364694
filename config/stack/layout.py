"""Where the files of an embedded stack are, and what it listens on."""

import os
from dataclasses import dataclass
from pathlib import Path

from config import env
from config.settings.broker import find_broker_socket

PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLayout:
    """One home folder and the addresses of its stack.

    Attributes:
        home: ASSAY_HOME.
        host: Address that the web process listens on.
        port: TCP port; 0 takes a free one.
        web_processes: Number of web processes that share the port.
        broker_url: An external broker, None for the embedded one.
    """

    home: Path
    host: str
    port: int
    web_processes: int
    broker_url: str | None

    @property
    def run_dir(self) -> Path:
        """Folder of locks, sockets and process ids."""
        return self.home / "run"

    @property
    def log_dir(self) -> Path:
        """Folder of one log file for each process."""
        return self.home / "log"

    @property
    def broker_dir(self) -> Path:
        """Folder of the embedded broker's data."""
        return self.home / "broker"

    @property
    def broker_socket(self) -> Path:
        """Socket of the embedded broker."""
        return find_broker_socket(self.home)

    @property
    def lock_path(self) -> Path:
        """Held by the supervisor as long as it lives, also when its files stay behind."""
        return self.run_dir / "stack.lock"

    @property
    def state_path(self) -> Path:
        """Process ids and addresses of the running stack."""
        return self.run_dir / "stack.json"

    @property
    def admin_token_path(self) -> Path:
        """The token that the command line of this machine uses; readable by its owner only."""
        return self.home / "admin_token"

    def child_environment(self) -> dict[str, str]:
        """Returns the environment of the stack's processes."""
        python_path = [str(PROJECT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(python_path),
            "ASSAY_HOME": str(self.home),
            "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "config.settings.embedded"),
            "PYTHONUNBUFFERED": "1",
            # Servers compute nothing; jobs, which do, set their own numbers.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        if self.broker_url is None:
            environment["REDIS_URL"] = f"redis+socket://{self.broker_socket}"
        return environment


def read_layout() -> StackLayout:
    """Reads the layout from the environment.

    Raises:
        EnvError: a variable cannot be read.
    """
    return StackLayout(
        home=env.get_path("ASSAY_HOME", Path.cwd() / "var"),
        host=env.get_str("ASSAY_HOST", "127.0.0.1"),
        port=env.get_int("ASSAY_PORT", 8000, minimum=0, maximum=65535),
        web_processes=env.get_int("ASSAY_WEB_PROCESSES", 1, minimum=1, maximum=64),
        broker_url=os.environ.get("REDIS_URL") or None,
    )
