"""Where the embedded broker listens."""

import hashlib
import os
import tempfile
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 100
"""The kernel allows 107; some room is left for names that a server derives from it."""


def find_broker_socket(home: Path) -> Path:
    """Returns the path of the embedded broker's socket for a home folder.

    It lies in `home/run`, unless that path is too long for a socket: then in a folder of the system's
    temporary folder that only this user may enter, with a name derived from the home.
    """
    path = home / "run" / "redis.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"assay-{os.getuid()}-{name}" / "redis.sock"
