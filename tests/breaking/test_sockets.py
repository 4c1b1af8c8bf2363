"""Sockets while the database is away: none stays open unwatched, none ends in a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from channels.db import database_sync_to_async
from django.db import connection

from portal.teams import sockets
from tests.people import browser, make_user, token_of
from tests.sockets import closed, socket

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@contextmanager
def no_users() -> Iterator[None]:
    """The table of people is away, as before a migration."""

    def rename(old: str, new: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")

    rename("teams_user", "away_user")
    try:
        yield
    finally:
        rename("away_user", "teams_user")


@pytest.mark.parametrize("by_token", [True, False])
async def test_a_socket_that_cannot_be_checked_is_closed(monkeypatch, by_token) -> None:
    monkeypatch.setattr(sockets, "CHECK_SECONDS", 0.1)
    ada = await database_sync_to_async(make_user)("ada")
    client = await database_sync_to_async(browser)(ada)
    who = {"token": await database_sync_to_async(token_of)(ada)} if by_token else {"client": client}
    away = no_users()
    async with socket(**who) as opened:
        await database_sync_to_async(away.__enter__)()
        try:
            assert await closed(opened) == sockets.TRY_AGAIN_LATER
        finally:
            await database_sync_to_async(away.__exit__)(None, None, None)


async def test_a_socket_that_cannot_be_opened_says_when_to_try_again() -> None:
    token = await database_sync_to_async(lambda: token_of(make_user("ada")))()
    away = no_users()
    await database_sync_to_async(away.__enter__)()
    try:
        async with socket(token=token) as opened:
            assert await closed(opened) == sockets.TRY_AGAIN_LATER
    finally:
        await database_sync_to_async(away.__exit__)(None, None, None)


@pytest.mark.parametrize("path", ["/ws/v1/nope", "/ws/v1/feed/", "/", "/ws/v1/jobs/../feed"])
@pytest.mark.parametrize("signed_in", [True, False])
async def test_a_path_without_a_socket_is_refused_without_a_traceback(path, signed_in) -> None:
    token = await database_sync_to_async(lambda: token_of(make_user("ada")))()
    headers = () if signed_in else ((b"host", b"localhost"), (b"origin", b"http://localhost"))
    async with socket(path, token=token if signed_in else None, headers=headers) as opened:
        assert opened.refused is not None
