"""Canonical JSON: one byte string for one value, so that equal definitions have equal digests."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return the value as UTF-8 JSON with sorted keys and no white space.

    Raises:
        ValueError: The value holds NaN or an infinity.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def canonical_digest(value: Any) -> str:
    """Return the lower-case hexadecimal sha256 of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
