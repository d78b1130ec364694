"""The bytes of a raw file: opened with a bound on what decompression may give, and cut into bounded lines."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from training.engine.data.intake.rows import FileRefused

_BLOCK_BYTES = 1 << 18
HEAD_BYTES = 480
"""Kept of a line that is too long, for the report."""


class RawLine(NamedTuple):
    """One line as bytes.

    Attributes:
        number: 1-based.
        offset: Byte where it begins in the (decompressed) file.
        data: The line with its line end; None when it is too long.
        num_bytes: Its length without the line end.
        head: Beginning of a line that is too long; empty else.
    """

    number: int
    offset: int
    data: bytes | None
    num_bytes: int
    head: bytes = b""


def open_bytes(path: Path, *, is_gzip: bool, max_decompressed_bytes: int) -> BinaryIO:
    """Open a file for reading; a .gz file is decompressed on the way.

    Raises:
        FileRefused: While reading: ``gzip-broken``, or ``decompressed-too-large`` when more than
            ``max_decompressed_bytes`` come out.
        OSError: The file cannot be opened.
    """
    if not is_gzip:
        return path.open("rb")
    return io.BufferedReader(_Decompressed(path, max_decompressed_bytes), _BLOCK_BYTES)


class _Decompressed(io.RawIOBase):
    """The content of a .gz file up to a bound."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._file = gzip.GzipFile(path, "rb")
        self._max_bytes = max_bytes
        self._num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self._file.read1(len(target))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            message = f"cannot be decompressed after {self._num_bytes} bytes: {error}"
            raise FileRefused("gzip-broken", message, remedy="Compress the file again.") from error
        self._num_bytes += len(data)
        if self._num_bytes > self._max_bytes:
            message = f"holds more than {self._max_bytes} bytes when decompressed"
            remedy = "Decompress and split the file, or raise limits.max_decompressed_bytes."
            raise FileRefused("decompressed-too-large", message, remedy=remedy)
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def iterate_raw_lines(
    file: BinaryIO, *, max_bytes: int, line_end: bytes = b"\n", skip: int = 0
) -> Iterator[RawLine]:
    """Cut a file into lines; a line that is too long is passed over in blocks and never held.

    Args:
        file: Opened at its beginning.
        max_bytes: Longest line, without its line end.
        line_end: The line feed in the file's encoding: one byte, or two for UTF-16.
        skip: Bytes at the beginning that belong to no line (byte order mark).
    """
    file.read(skip)
    if len(line_end) == 1:
        yield from _narrow_lines(file, max_bytes, skip)
    else:
        yield from _wide_lines(file, max_bytes, line_end, skip)


def _narrow_lines(file: BinaryIO, max_bytes: int, offset: int) -> Iterator[RawLine]:
    number = 0
    while data := file.readline(max_bytes + 2):
        number += 1
        num_read = len(data)
        num_bytes = num_read - data.endswith(b"\n") - data.endswith(b"\r\n")
        head = b""
        if num_bytes > max_bytes or (num_read == max_bytes + 2 and not data.endswith(b"\n")):
            head = data[:HEAD_BYTES]
            last = data
            while not last.endswith(b"\n") and (last := file.readline(_BLOCK_BYTES)):
                num_read += len(last)
            yield RawLine(number, offset, None, num_read - last.endswith(b"\n"), head)
        else:
            yield RawLine(number, offset, data, num_bytes)
        offset += num_read


def _wide_lines(file: BinaryIO, max_bytes: int, line_end: bytes, offset: int) -> Iterator[RawLine]:
    buffer = bytearray()
    number, num_dropped, searched, head = 0, 0, 0, b""
    is_last = False
    while not is_last:
        block = file.read(_BLOCK_BYTES)
        is_last = not block
        buffer += block
        while (end := _find_aligned(buffer, line_end, searched)) >= 0 or (
            is_last and (buffer or num_dropped)
        ):
            stop = end + 2 if end >= 0 else len(buffer)
            number += 1
            num_bytes = num_dropped + stop - 2 * (end >= 0)
            data = None if num_bytes > max_bytes else bytes(buffer[:stop])
            yield RawLine(
                number, offset, data, num_bytes, (head or bytes(buffer[:HEAD_BYTES])) if data is None else b""
            )
            offset += num_dropped + stop
            del buffer[:stop]
            num_dropped, searched, head = 0, 0, b""
        searched = len(buffer) - len(buffer) % 2
        if len(buffer) > max_bytes:
            head = head or bytes(buffer[:HEAD_BYTES])
            num_dropped += searched
            del buffer[:searched]
            searched = 0


def _find_aligned(buffer: bytearray, line_end: bytes, start: int) -> int:
    """Return the place of a line end that begins at an even byte, or -1."""
    place = buffer.find(line_end, start)
    while place % 2 == 1 and place >= 0:
        place = buffer.find(line_end, place + 1)
    return place
