"""What long operations tell about themselves; the command line draws it, a program may ignore it."""

from typing import Protocol


class TransferProgress(Protocol):
    """Listener of one transfer. May be called from several threads."""

    def start(self, description: str, total_bytes: int) -> None:
        """Begin a stage ("hashing", "uploading") of ``total_bytes``."""
        ...

    def advance(self, num_bytes: int) -> None:
        """Count bytes of the present stage; negative when bytes have to be sent again."""
        ...

    def note(self, message: str) -> None:
        """Say something worth a line ("the server has 3 of 5 files already")."""
        ...


class SilentTransferProgress:
    """Listener that ignores everything."""

    def start(self, description: str, total_bytes: int) -> None:
        """Ignore the stage."""

    def advance(self, num_bytes: int) -> None:
        """Ignore the bytes."""

    def note(self, message: str) -> None:
        """Ignore the message."""


def format_bytes(num_bytes: float) -> str:
    """Return a size for people: binary units, as file managers and `ls -h` count (``1.5 MiB``)."""
    if num_bytes < 1024:
        return f"{num_bytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        num_bytes /= 1024
        if num_bytes < 1024:
            return f"{num_bytes:.1f} {unit}"
    return f"{num_bytes / 1024:.1f} TiB"
