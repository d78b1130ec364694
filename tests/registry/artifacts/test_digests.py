import hashlib
import io

import pytest

from registry.artifacts.digests import (
    HASH_CHUNK_BYTES,
    canonical_json,
    digest_json,
    hash_stream,
    is_sha256,
    require_sha256,
)
from registry.artifacts.errors import DigestError

# FIPS 180-4 examples: sha256("abc") and sha256("").
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_hash_stream_matches_the_standard() -> None:
    assert hash_stream(io.BytesIO(b"abc")).sha256 == ABC
    assert hash_stream(io.BytesIO(b"")).sha256 == EMPTY


def test_hash_stream_reads_in_chunks_and_passes_them_on() -> None:
    content = bytes(HASH_CHUNK_BYTES) + b"x"
    parts: list[bytes] = []
    digest = hash_stream(io.BytesIO(content), sink=parts.append)
    assert [len(part) for part in parts] == [HASH_CHUNK_BYTES, 1]
    assert digest.size_bytes == HASH_CHUNK_BYTES + 1
    assert digest.sha256 == hashlib.sha256(content).hexdigest()


def test_canonical_json_is_sorted_compact_utf8() -> None:
    assert canonical_json({"b": 1, "a": ["é", None, True]}) == '{"a":["é",null,true],"b":1}'.encode()
    assert digest_json({"b": 1, "a": 2}) == digest_json({"a": 2, "b": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1, 2}, {1: "a", "b": 2}])
def test_canonical_json_refuses_what_json_cannot_say(value: object) -> None:
    with pytest.raises(DigestError) as caught:
        canonical_json(value)
    assert caught.value.code == "json-not-canonical"


@pytest.mark.parametrize(
    "text", ["", ABC.upper(), ABC[:-1], ABC + "0", ABC + "\n", "sha256:" + ABC, "../" + ABC[3:], None]
)
def test_only_64_lowercase_hex_digits_are_a_digest(text: object) -> None:
    assert not is_sha256(text)
    if isinstance(text, str):
        with pytest.raises(DigestError):
            require_sha256(text)


def test_a_digest_is_accepted() -> None:
    assert require_sha256(ABC) == ABC
