"""sha256 of streams and of JSON values.

A digest is 64 lowercase hexadecimal digits everywhere: in manifests, in the database, in URLs and in file
names; there is no "sha256:" prefix. Standard library only.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from registry.artifacts.errors import DigestError
from registry.artifacts.findings import shown

HASH_CHUNK_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Readable(Protocol):
    """Anything with a binary `read(size)`: files, sockets, request bodies."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, and b"" at the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDigest:
    """The sha256 (64 lowercase hex digits) of a stream and its length in bytes."""

    sha256: str
    size_bytes: int


def is_sha256(text: object) -> bool:
    """Return whether `text` is 64 lowercase hexadecimal digits."""
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def require_sha256(text: str) -> str:
    """Return `text` if it is a digest.

    Raises:
        DigestError: it is not 64 lowercase hexadecimal digits (so it can also not leave the store's folder as
        a path).
    """
    if not is_sha256(text):
        raise DigestError(
            f"{shown(text)!r} is not a sha256 digest: 64 lowercase hexadecimal digits are expected."
        )
    return text


def hash_stream(stream: Readable, *, sink: Callable[[bytes], object] | None = None) -> StreamDigest:
    """Read a stream to its end and return its sha256 and length; each chunk is also passed to `sink`.

    Args:
        stream: binary stream, read in chunks of `HASH_CHUNK_BYTES`, never as a whole.
        sink: called with every chunk in order (for example a file's `write`), so that bytes are read once.
    """
    hasher = hashlib.sha256()
    size_bytes = 0
    while chunk := stream.read(HASH_CHUNK_BYTES):
        hasher.update(chunk)
        size_bytes += len(chunk)
        if sink is not None:
            sink(chunk)
    return StreamDigest(sha256=hasher.hexdigest(), size_bytes=size_bytes)


def canonical_json(value: Any) -> bytes:
    """Return the one byte form of a JSON value: keys sorted, no white space, UTF-8, no NaN or infinity.

    Raises:
        DigestError: the value holds something that JSON cannot say (NaN, a lone surrogate, another type,
        mixed keys).
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise DigestError(
            f"The value has no canonical JSON form: {error}.", code="json-not-canonical"
        ) from error


def digest_json(value: Any) -> str:
    """Return the sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
