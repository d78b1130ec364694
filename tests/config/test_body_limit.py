"""Bodies above the limit never reach the application, declared or not."""

import asyncio
import json
from typing import Any

from config.body_limit import BodyLimit, Message, Receive, Scope, Send


async def count_body(scope: Scope, receive: Receive, send: Send) -> None:
    total = 0
    while True:
        message = await receive()
        total += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(total).encode()})


def ask(chunks: list[bytes], *, declared: int | None) -> tuple[int, bytes]:
    sent: list[Message] = []
    waiting = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks) - 1}
        for number, chunk in enumerate(chunks)
    ]

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    scope: dict[str, Any] = {"type": "http", "path": "/x", "headers": headers}
    asyncio.run(BodyLimit(count_body, max_bytes=10)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_a_body_of_exactly_the_limit_passes() -> None:
    assert ask([b"12345", b"67890"], declared=10) == (200, b"10")


def test_a_declared_length_above_the_limit_is_refused_unread() -> None:
    status, body = ask([b""], declared=11)
    assert status == 413
    assert json.loads(body)["code"] == "payload-too-large"


def test_an_undeclared_body_is_stopped_when_it_passes_the_limit() -> None:
    assert ask([b"123456", b"78901", b"never read"], declared=None)[0] == 413
