"""The embedded broker by itself, for tests that need a real one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.stack.broker import is_broker_answering
from config.stack.layout import StackLayout
from config.stack.plan import plan_broker
from config.stack.processes import ManagedProcess


@contextmanager
def running_broker(home: Path) -> Iterator[str]:
    """Starts the broker of a home folder, gives its address as a REDIS_URL, and stops it at the end."""
    layout = StackLayout(home=home, host="127.0.0.1", port=0, web_processes=1, broker_url=None)
    for folder in (layout.broker_dir, layout.broker_socket.parent, layout.log_dir):
        folder.mkdir(parents=True, exist_ok=True)
    process = ManagedProcess(plan_broker(layout))
    process.start()
    try:
        deadline = time.monotonic() + 20
        while not is_broker_answering(layout.broker_socket):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"redis+socket://{layout.broker_socket}"
    finally:
        process.kill()
