"""The server's own secret on a single machine."""

import os
import secrets
from pathlib import Path


def load_or_create_secret(path: Path) -> str:
    """Reads the secret from `path` (mode 0600), making it once; two racing processes agree on one value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_settled(path)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    return _read_settled(path)


def _read_settled(path: Path) -> str:
    value = path.read_text(encoding="ascii").strip()
    if not value:
        raise ValueError(f"{path} is empty; delete it so that a new secret is made.")
    return value
