"""A bound for what a request may bring, before any of it is read to memory or disk. No Django."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[Any]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
_LENGTH = b"content-length"


def bounded(application: Application, *, most_bytes: int) -> Application:
    """Return the ASGI application, which is spared the rest of a body above `most_bytes`.

    It then sees an empty body and the length in `Content-Length`, by which it refuses.
    """

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if _length_of(scope) > most_bytes:
            await application(scope, _empty(), send)
            return
        first, size = await _read(receive, most_bytes)
        if size > most_bytes:
            headers = [pair for pair in scope["headers"] if pair[0] != _LENGTH]
            headers.append((_LENGTH, str(size).encode()))
            await application({**scope, "headers": headers}, _empty(), send)
            return
        await application(scope, _again(first, receive), send)

    return call


def _length_of(scope: Any) -> int:
    texts = [value for name, value in scope["headers"] if name == _LENGTH]
    return int(texts[-1]) if texts and texts[-1].isdigit() and len(texts[-1]) < 20 else 0


async def _read(receive: Receive, most_bytes: int) -> tuple[Any, int]:
    """Read until the body has ended or is too large; return one message for all of it, and size."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message, size
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > most_bytes or not message.get("more_body", False):
            return {"type": "http.request", "body": b"".join(pieces), "more_body": False}, size


def _empty() -> Receive:
    async def never() -> Any:
        await asyncio.Event().wait()  # who asks is cancelled with the request

    return _again({"type": "http.request", "body": b"", "more_body": False}, never)


def _again(first: Any, receive: Receive) -> Receive:
    """Give the message, then whatever comes."""
    waiting = [first]

    async def call() -> Any:
        return waiting.pop() if waiting else await receive()

    return call
