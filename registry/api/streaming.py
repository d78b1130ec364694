"""Files leave the server in chunks, with ranges; never a whole file in memory.

Under ASGI Django would read a plain iterator to its end before it sends the first byte, so there the chunks
come from an asynchronous iterator.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

CHUNK_BYTES = 1 << 20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """Bytes `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length_bytes(self) -> int:
        """How many bytes these are."""
        return self.last - self.first + 1


class UnsatisfiableRange(ValueError):
    """The range lies behind the end of the file (416)."""


def parse_range(header: str, size_bytes: int) -> ByteRange | None:
    """Reads a `Range` header.

    Args:
        header: Its value; "" when there is none.
        size_bytes: Length of the file.

    Returns:
        The range; None when the whole file is to be sent: no header, another unit, several ranges, or one
        that is no range at all (RFC 9110 lets a server ignore these).

    Raises:
        UnsatisfiableRange: no byte of the file is in the range.
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first_text, last_text = found.groups()
    if not first_text:
        first, last = max(size_bytes - int(last_text), 0), size_bytes - 1
        is_empty = int(last_text) == 0 or size_bytes == 0
    else:
        first = int(first_text)
        last = min(int(last_text), size_bytes - 1) if last_text else size_bytes - 1
        if last_text and int(last_text) < first:
            return None
        is_empty = first >= size_bytes
    if is_empty:
        raise UnsatisfiableRange(header)
    return ByteRange(first=first, last=last)


def stream_file(
    request: HttpRequest, file: BinaryIO, *, size_bytes: int, etag: str, name: str
) -> HttpResponseBase:
    """Sends an open file, or the part of it that the request asks for; closes the file at the end.

    Args:
        request: Its method, `Range`, `If-Range` and `If-None-Match` decide what is sent.
        file: Seekable, at its beginning.
        size_bytes: Its length.
        etag: Without quotes; names the content.
        name: The name under which a browser would save it; never trusted.
    """
    response = _choose(request, file, size_bytes=size_bytes, etag=etag)
    if not isinstance(response, StreamingHttpResponse):
        file.close()
    response["ETag"] = f'"{etag}"'
    response["Accept-Ranges"] = "bytes"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    disposition = content_disposition_header(as_attachment=True, filename=name.rpartition("/")[2])
    response["Content-Disposition"] = disposition or "attachment"
    return response


def _choose(request: HttpRequest, file: BinaryIO, *, size_bytes: int, etag: str) -> HttpResponseBase:
    quoted = f'"{etag}"'
    if quoted in request.headers.get("If-None-Match", ""):
        return HttpResponse(status=304)
    wanted = request.headers.get("Range", "")
    if request.headers.get("If-Range", quoted) != quoted:
        wanted = ""
    try:
        part = parse_range(wanted, size_bytes)
    except UnsatisfiableRange:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size_bytes}"})
    length_bytes = size_bytes if part is None else part.length_bytes
    headers = {"Content-Length": str(length_bytes), "Content-Type": "application/octet-stream"}
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{size_bytes}"
    status = 200 if part is None else 206
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    if part is not None:
        file.seek(part.first)
    kind = AsyncFileChunks if isinstance(request, ASGIRequest) else FileChunks
    return StreamingHttpResponse(kind(file, length_bytes), status=status, headers=headers)


class FileChunks:
    """The next `length_bytes` bytes of a file, chunk by chunk."""

    def __init__(self, file: BinaryIO, length_bytes: int) -> None:
        """Takes an open file; it belongs to this object from now on."""
        self._file = file
        self._left_bytes = length_bytes

    def __iter__(self) -> Iterator[bytes]:
        """Gives the chunks."""
        while chunk := self._read():
            yield chunk

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _read(self) -> bytes:
        chunk = self._file.read(min(CHUNK_BYTES, self._left_bytes))
        self._left_bytes -= len(chunk)
        return chunk


class AsyncFileChunks:
    """As `FileChunks`, read in a thread so that the event loop is not held up."""

    def __init__(self, file: BinaryIO, length_bytes: int) -> None:
        """Takes an open file; it belongs to this object from now on."""
        self._chunks = FileChunks(file, length_bytes)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Gives the chunks."""
        read = sync_to_async(self._chunks._read, thread_sensitive=False)
        while chunk := await read():
            yield chunk

    def close(self) -> None:
        """Closes the file."""
        self._chunks.close()
