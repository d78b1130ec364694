"""Keeping log files small: processes append to them, and the supervisor cuts them when they have grown."""

import shutil
from collections.abc import Iterable
from pathlib import Path

MAX_LOG_BYTES = 20 * 1024**2


def rotate_logs(paths: Iterable[Path], *, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Copies each log that has grown over `max_bytes` to `<name>.1` and empties it.

    The processes write in append mode, so they go on at the new end; a line written between copy and cut is
    lost.
    """
    for path in paths:
        try:
            if path.stat().st_size <= max_bytes:
                continue
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            with path.open("r+b") as file:
                file.truncate(0)
        except OSError:
            # A full disk must not end the supervisor; emptying without a copy is tried at the next start.
            continue


def tail_lines(path: Path, *, num_lines: int = 15) -> list[str]:
    """Returns the last lines of a log; none when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - 16 * 1024, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-num_lines:]
