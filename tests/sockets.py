"""Sockets of tests: opened by a browser's session or by a token, over the real channel layer."""

import asyncio
from contextlib import asynccontextmanager

from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator

from portal.routing import websocket

HOME = b"http://localhost"
DEADLINE = 5


def session_headers(client, *, origin: bytes | None = HOME) -> list[tuple[bytes, bytes]]:
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    headers = [(b"host", b"localhost"), (b"cookie", cookies.encode())]
    return headers + ([(b"origin", origin)] if origin else [])


@asynccontextmanager
async def socket(path="/ws/v1/feed", *, headers=(), token=None, client=None):
    """A socket of a token or a browser, and the close code if it was closed on opening."""
    if client is not None:
        headers = session_headers(client)
    protocols = ["bearer", token] if token else None
    opened = WebsocketCommunicator(websocket, path, headers=list(headers), subprotocols=protocols)
    connected, answer = await opened.connect(timeout=DEADLINE)
    opened.refused = None if connected else answer
    opened.protocol = answer if connected else None
    yield opened
    await opened.disconnect(timeout=DEADLINE)


async def closed(opened) -> int:
    """The close code, within the deadline."""
    async with asyncio.timeout(DEADLINE):
        while True:
            message = await opened.receive_output(timeout=DEADLINE)
            if message["type"] == "websocket.close":
                return message["code"]


async def in_thread(call, *args, **kwargs):
    return await database_sync_to_async(call)(*args, **kwargs)
