"""The feed socket over a real Valkey: who may listen, what arrives, and when it ends."""

import asyncio

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings

from portal.routing import websocket
from portal.teams import sockets
from portal.teams.models import ApiToken
from portal.teams.services import members, teams, tokens, users
from tests.jobs.makers import make_job
from tests.people import PERSONAS, actor_of, browser, make_world, token_of
from tests.sockets import DEADLINE, closed, in_thread, session_headers, socket
from tests.walks.policy import SOCKETS, Answer, Caller

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
PATHS = {
    "ws-feed": "/ws/v1/feed",
    "ws-job-logs": "/ws/v1/jobs/{job}/logs",
    "ws-job-metrics": "/ws/v1/jobs/{job}/metrics",
}
REFUSALS = {Answer.LOGIN: sockets.NOT_SIGNED_IN, Answer.HIDDEN: sockets.ENDED}


@pytest.fixture
def world(db):
    return make_world()


@pytest.fixture
def checks_often(monkeypatch):
    monkeypatch.setattr(sockets, "CHECK_SECONDS", 0.1)


@pytest.mark.parametrize("name", SOCKETS)
@pytest.mark.parametrize("persona", PERSONAS)
async def test_each_socket_answers_each_persona_as_the_table_says(world, name, persona):
    expected = SOCKETS[name].expect(Caller(persona=persona))
    job, _token = await in_thread(make_job, world)
    client = await in_thread(browser, world.people[persona])
    async with socket(PATHS[name].format(job=job.pk), client=client) as opened:
        assert opened.refused is None
        if expected is Answer.YES:
            assert await opened.receive_nothing(timeout=0.05)
        else:
            assert await closed(opened) == REFUSALS[expected]


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null", None])
async def test_a_session_from_a_foreign_page_is_refused(world, origin):
    client = await in_thread(browser, world.people["manager"])
    async with socket(headers=session_headers(client, origin=origin)) as opened:
        assert opened.refused is not None


async def test_a_program_needs_no_origin_but_a_token(world):
    text = await in_thread(token_of, world.people["viewer"], scopes=["read"])
    async with socket(token=text) as opened:
        assert opened.protocol == "bearer"
        await in_thread(rename, world, world.team)
        assert await opened.receive_json_from(timeout=DEADLINE) == {
            "type": "changed",
            "kind": "event",
            "team": "vision",
        }


@pytest.mark.parametrize("protocols", [["bearer"], ["bearer", ""], ["bearer", "slw_no"]])
async def test_a_bad_bearer_never_falls_back_to_the_session(world, protocols):
    client = await in_thread(browser, world.people["manager"])
    headers = session_headers(client, origin=b"https://evil.example")
    opened = WebsocketCommunicator(
        websocket, "/ws/v1/feed", headers=headers, subprotocols=protocols
    )
    connected, _ = await opened.connect(timeout=DEADLINE)
    assert not connected or await closed(opened) == sockets.NOT_SIGNED_IN


def rename(world, team):
    teams.update_team(world.actor("admin"), team, name=f"{team.name}!")
    team.refresh_from_db()


async def test_nothing_of_another_team_arrives(world):
    other = await in_thread(browser, world.people["other"])
    viewer = await in_thread(browser, world.people["viewer"])
    bound = await in_thread(token_of, world.people["admin"], team=world.other)
    async with (
        socket(client=other) as of_other,
        socket(client=viewer) as of_viewer,
        socket(token=bound) as of_bound,
    ):
        await in_thread(rename, world, world.team)
        heard = await of_viewer.receive_json_from(timeout=DEADLINE)
        assert heard["team"] == "vision"
        await in_thread(rename, world, world.other)
        for opened in (of_other, of_bound):
            heard = await opened.receive_json_from(timeout=DEADLINE)
            assert heard["team"] == "speech"  # and `vision` did not come before it
        assert await of_viewer.receive_nothing(timeout=0.05)


def revoke(world, client, text):
    row = ApiToken.objects.get(digest=tokens.digest_of(text))
    tokens.revoke_token(world.actor("member"), row)


def expire(world, client, text):
    ApiToken.objects.filter(digest=tokens.digest_of(text)).update(expires_at="2020-01-01T00:00Z")


def deactivate(world, client, text):
    users.deactivate(world.actor("admin"), user_id=world.people["member"].pk)


def change_password(world, client, text):
    user = world.people["member"]
    user.set_password("another long passphrase")
    user.save(update_fields=["password"])


def sign_out(world, client, text):
    client.logout()


@pytest.mark.usefixtures("checks_often")
@pytest.mark.parametrize(
    ("end", "by_token"),
    [
        (revoke, True),
        (expire, True),
        (deactivate, True),
        (deactivate, False),
        (sign_out, False),
        (change_password, False),
    ],
)
async def test_the_socket_ends_with_what_opened_it(world, end, by_token):
    user = world.people["member"]
    client = await in_thread(browser, user)
    text = await in_thread(token_of, user, scopes=["write"])
    opening = {"token": text} if by_token else {"client": client}
    async with socket(**opening) as opened:
        await in_thread(end, world, client, text)
        assert await closed(opened) == sockets.ENDED


@pytest.mark.usefixtures("checks_often")
async def test_a_removed_member_hears_no_more_and_a_new_team_is_heard(world):
    user = world.people["member"]
    client = await in_thread(browser, user)
    async with socket(client=client) as opened:
        manager = await in_thread(actor_of, world.people["manager"])
        await in_thread(members.remove_member, manager, world.team, user_id=user.pk)
        while not await opened.receive_nothing(timeout=0.3):  # the removal itself may be heard
            await opened.receive_json_from(timeout=DEADLINE)
        await in_thread(rename, world, world.team)
        assert await opened.receive_nothing(timeout=0.3)
        admin = await in_thread(actor_of, world.people["admin"])
        await in_thread(members.add_member, admin, world.other, email=user.email, role="viewer")
        async with asyncio.timeout(DEADLINE):
            while await opened.receive_nothing(timeout=0.2):
                await in_thread(rename, world, world.other)
        assert (await opened.receive_json_from(timeout=DEADLINE))["team"] == "speech"


@pytest.mark.parametrize("said", [{"text_data": "{"}, {"text_data": "\0"}, {"bytes_data": b"\xff"}])
async def test_what_a_browser_says_breaks_nothing(world, said):
    client = await in_thread(browser, world.people["viewer"])
    async with socket(client=client) as opened:
        await opened.send_to(**said)
        await in_thread(rename, world, world.team)
        assert (await opened.receive_json_from(timeout=DEADLINE))["team"] == "vision"


def test_the_check_comes_within_a_minute():
    assert sockets.CHECK_SECONDS <= 60
    assert settings.CHANNEL_LAYERS["default"]["BACKEND"].endswith("RedisPubSubChannelLayer")
