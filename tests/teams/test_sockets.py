"""Sockets of people: what breaks in one ends it, and leaves nothing behind."""

import asyncio

import pytest
from channels.testing import WebsocketCommunicator

from portal.teams import sockets
from tests.people import World, make_world, token_of
from tests.sockets import DEADLINE, in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture
def world(db) -> World:
    return make_world()


async def test_a_socket_whose_watch_broke_still_ends(world, monkeypatch) -> None:
    """A server raises when a socket that it has closed is closed again."""
    monkeypatch.setattr(sockets, "CHECK_SECONDS", 0.01)
    opened: list[sockets.PersonSocket] = []
    ended = asyncio.Event()

    class Breaking(sockets.PersonSocket):
        async def check(self) -> None:
            opened.append(self)
            if len(opened) > 1:
                raise RuntimeError("it is closed already")

        async def end(self) -> None:
            ended.set()

    token = await in_thread(token_of, world.people["viewer"], scopes=["read"])
    socket = WebsocketCommunicator(Breaking.as_asgi(), "/", subprotocols=["bearer", token])
    await socket.connect(timeout=DEADLINE)
    async with asyncio.timeout(DEADLINE):
        while not opened[0].watch.done():
            await socket.receive_nothing(timeout=0.01)
    await socket.disconnect(timeout=DEADLINE)
    assert ended.is_set()
