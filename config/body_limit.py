"""Refuses request bodies that are larger than anything the server takes, before they are read.

Django writes a whole request body to disk before a view sees it; without this limit one client could fill
the disk.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_STATUS: Final = 413


class BodyTooLargeError(Exception):
    """More bytes arrived than allowed."""


class BodyLimit:
    """An ASGI application around another one.

    Args:
        application: What answers the requests that are small enough.
        max_bytes: The largest body, inclusive.
    """

    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self._application = application
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers 413 with a problem document."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        declared = _declared_length(scope)
        if declared is not None and declared > self._max_bytes:
            await self._refuse(scope, send)
            return
        is_started = False

        async def counted_send(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            await self._application(scope, self._counted(receive), counted_send)
        except BodyTooLargeError:
            if is_started:
                raise
            await self._refuse(scope, send)

    def _counted(self, receive: Receive) -> Receive:
        """`receive` that stops a body without a declared length at the limit."""
        num_received = 0

        async def counted() -> Message:
            nonlocal num_received
            message = await receive()
            num_received += len(message.get("body", b""))
            if num_received > self._max_bytes:
                raise BodyTooLargeError
            return message

        return counted

    async def _refuse(self, scope: Scope, send: Send) -> None:
        problem = {
            "type": "/problems/payload-too-large",
            "title": "Payload too large",
            "status": _STATUS,
            "code": "payload-too-large",
            "detail": f"A request body may have {self._max_bytes} bytes at most; send files in chunks.",
            "instance": scope.get("path", ""),
        }
        body = json.dumps(problem).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": _STATUS, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _declared_length(scope: Scope) -> int | None:
    """Content-Length as a number; None when it is missing or unreadable."""
    for name, value in scope.get("headers", ()):
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None
