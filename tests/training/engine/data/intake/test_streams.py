import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.intake.rows import FileRefused
from training.engine.data.intake.streams import iterate_raw_lines, open_bytes


def lines(
    data: bytes, max_bytes: int = 100, line_end: bytes = b"\n"
) -> list[tuple[int, int, bytes | None, int]]:
    found = iterate_raw_lines(io.BytesIO(data), max_bytes=max_bytes, line_end=line_end)
    return [(line.number, line.offset, line.data, line.num_bytes) for line in found]


def test_lines_with_their_places() -> None:
    assert lines(b"ab\r\n\ncd") == [(1, 0, b"ab\r\n", 2), (2, 4, b"\n", 0), (3, 5, b"cd", 2)]


def test_a_line_that_is_too_long_is_passed_over() -> None:
    assert lines(b"12345\n123456\n1\n", max_bytes=5) == [
        (1, 0, b"12345\n", 5),
        (2, 6, None, 6),
        (3, 13, b"1\n", 1),
    ]
    assert lines(b"x" * 1_000_000, max_bytes=5) == [(1, 0, None, 1_000_000)]
    # A line end of CRLF just over the bound of the read.
    assert lines(b"12345\r\n1", max_bytes=5) == [(1, 0, b"12345\r\n", 5), (2, 7, b"1", 1)]


def test_utf16_lines_end_at_even_places_only() -> None:
    # U+0A00 and U+000A beside U+0A0A hold the bytes of a line feed at odd places.
    text = "a\u0a00\u0a0a\nb\n"
    found = lines(text.encode("utf-16-le"), line_end="\n".encode("utf-16-le"))
    assert [data.decode("utf-16-le") for _, _, data, _ in found if data] == ["a\u0a00\u0a0a\n", "b\n"]
    assert [offset for _, offset, _, _ in found] == [0, 8]


def test_utf16_line_that_is_too_long() -> None:
    data = ("x" * 500_000 + "\nok").encode("utf-16-be")
    found = lines(data, line_end="\n".encode("utf-16-be"))
    assert found == [(1, 0, None, 1_000_000), (2, 1_000_002, "ok".encode("utf-16-be"), 4)]


@given(st.lists(st.text("ab\u0a0a\u0a00", max_size=5)), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_lines_put_together_are_the_file(texts: list[str], name: str) -> None:
    data = "".join(f"{text}\n" for text in texts).encode(name)
    found = lines(data, line_end="\n".encode(name))
    assert b"".join(line for _, _, line, _ in found if line is not None) == data
    assert len(found) == len(texts)


def refused(path: Path, max_bytes: int) -> str:
    file = open_bytes(path, is_gzip=True, max_decompressed_bytes=max_bytes)
    with file, pytest.raises(FileRefused) as caught:
        while file.read(1 << 16):
            pass
    return caught.value.fault.code


def test_decompression_has_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"0" * 10_000_000))
    assert path.stat().st_size < 20_000
    with open_bytes(path, is_gzip=True, max_decompressed_bytes=10_000_000) as file:
        assert sum(len(block) for block in iter(lambda: file.read(1 << 16), b"")) == 10_000_000
    assert refused(path, 9_999_999) == "decompressed-too-large"


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"abc" * 1000, mtime=0)[:-12], gzip.compress(b"abc", mtime=0) + b"junk", b"\x1f\x8bxx"],
)
def test_broken_gzip(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    assert refused(path, 10_000) == "gzip-broken"
