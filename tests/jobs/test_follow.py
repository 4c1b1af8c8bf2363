"""Following a log over the real socket, store and channel layer."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from jobs import consumers, follow
from jobs.logs import read
from jobs.models import Job, LogCursor
from portal.teams import sockets
from portal.teams.services import members
from tests.jobs.makers import ERR, OUT, chunk, make_job, post, text
from tests.people import World, actor_of, browser, make_world, token_of
from tests.sockets import DEADLINE, closed, in_thread, socket

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture
def world(db) -> World:
    return make_world()


async def opened_by(world: World, persona: str = "viewer"):
    return await in_thread(token_of, world.people[persona], scopes=["read"])


def path(job: Job, offset: int = 0, stream: str = "all") -> str:
    return f"/ws/v1/jobs/{job.pk}/logs?stream={stream}&offset={offset}"


async def frames(opened, *, until: int) -> "list[dict]":
    """The frames up to an offset."""
    got = []
    async with asyncio.timeout(DEADLINE):
        while not got or got[-1]["next_offset"] < until:
            got.append(await opened.receive_json_from(timeout=DEADLINE))
    return got


async def test_what_is_there_comes_first_and_then_what_is_posted(world) -> None:
    job, token = await in_thread(make_job, world)
    await in_thread(post, token, chunk(OUT, 0, b"one\n"), chunk(ERR, 0, b"bad\n"))
    async with socket(path(job), token=await opened_by(world)) as opened:
        first = await frames(opened, until=8)
        assert [(f["type"], f["stream"], f["text"], f["line"]) for f in first] == [
            ("chunk", OUT, "one\n", 0),
            ("chunk", ERR, "bad\n", 1),
        ]
        answer = await in_thread(post, token, chunk(OUT, 4, "zwei é\n".encode()))
        assert answer.is_followed
        more = await frames(opened, until=16)
        assert [f["text"] for f in more] == ["zwei é\n"]


async def test_a_hint_that_is_lost_costs_time_and_no_line(world, monkeypatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.2)
    monkeypatch.setattr("portal.core.push.outbox.put", lambda *_given: None)
    job, token = await in_thread(make_job, world)
    async with socket(path(job), token=await opened_by(world)) as opened:
        await in_thread(post, token, chunk(OUT, 0, b"quiet\n"))
        assert (await frames(opened, until=6))[0]["text"] == "quiet\n"


async def test_resuming_by_the_last_offset_loses_and_doubles_nothing(world) -> None:
    job, token = await in_thread(make_job, world)
    source = b"".join(b"line %05d \xc3\xa9\n" % n for n in range(40_000))
    seen, offset = "", 0
    for start in range(0, len(source), 98_000):
        await in_thread(post, token, chunk(OUT, start, source[start : start + 98_000]))
        until = min(start + 70_000, len(source))
        async with socket(path(job, offset), token=await opened_by(world)) as opened:
            for frame in await frames(opened, until=until):
                assert frame["offset"] == offset
                assert len(frame["text"].encode()) <= consumers.FRAME_BYTES + 8
                seen, offset = seen + frame["text"], frame["next_offset"]
    assert seen.encode() == source


async def test_the_end_is_said_once_the_agent_has_said_it(world) -> None:
    job, token = await in_thread(make_job, world)
    await in_thread(post, token, chunk(OUT, 0, b"last\n"))
    async with socket(path(job), token=await opened_by(world)) as opened:
        await frames(opened, until=5)
        await in_thread(
            Job.objects.filter(pk=job.pk).update,
            phase="SUCCEEDED",
            submitted_at="2026-01-01T00:00Z",
        )
        await in_thread(post, token, exit={"code": 0, "signal": None})
        assert await opened.receive_json_from(timeout=DEADLINE) == {"type": "end", "next_offset": 5}
        assert await closed(opened) == consumers.DONE


async def test_many_followers_share_one_reader_and_begin_anywhere(world) -> None:
    job, token = await in_thread(make_job, world)
    data = b"x" * 99 + b"\n"
    await in_thread(post, token, chunk(OUT, 0, data * 100))
    text_of_token = await opened_by(world)
    async with (
        socket(path(job, 0), token=text_of_token) as first,
        socket(path(job, 5_050), token=text_of_token) as middle,
        socket(path(job, -100), token=text_of_token) as last,
        socket(path(job, 0, ERR), token=text_of_token) as errors,
    ):
        assert (await frames(first, until=10_000))[0]["offset"] == 0
        found = (await frames(middle, until=10_000))[0]
        assert (found["offset"], found["line"]) == (5_050, 50)
        assert (await frames(last, until=10_000))[0]["offset"] == 9_900
        await in_thread(post, token, chunk(ERR, 0, b"oops\n"))
        assert (await frames(errors, until=5))[0]["offset"] == 0
        assert (await frames(first, until=10_005))[0]["offset"] == 10_000
        assert follow.hub().readers[job.pk, "all"].sockets == 3
    assert not follow.hub().readers


async def test_a_reader_that_could_not_begin_holds_up_nobody_after_it(world, monkeypatch) -> None:
    job, token = await in_thread(make_job, world)
    await in_thread(post, token, chunk(OUT, 0, b"there\n"))
    with monkeypatch.context() as broken:
        broken.setattr(read, "_HEAD", "SELECT none FROM jobs_logcursor WHERE job_id = %s")
        async with socket(path(job), token=await opened_by(world)) as opened:
            assert await closed(opened) == sockets.TRY_AGAIN_LATER
    async with socket(path(job), token=await opened_by(world)) as opened:
        assert (await frames(opened, until=6))[0]["text"] == "there\n"


async def test_a_gap_is_a_frame_of_its_own(world) -> None:
    job, token = await in_thread(make_job, world)
    gap = {"stream": OUT, "offset": 0, "at": 1.0, "gap": 70, "reason": "spool_full"}
    await in_thread(post, token, gap, chunk(OUT, 70, b"on\n"))
    async with socket(path(job), token=await opened_by(world)) as opened:
        found = await opened.receive_json_from(timeout=DEADLINE)
        assert (found["type"], found["reason"]) == ("gap", "spool_full")
        assert "70 bytes" in found["text"]
        after = await opened.receive_json_from(timeout=DEADLINE)
        assert after["offset"] == found["next_offset"]


async def test_losing_the_membership_ends_the_socket(world) -> None:
    job, _token = await in_thread(make_job, world)
    client = await in_thread(browser, world.people["viewer"])
    async with socket(path(job), client=client) as opened:
        manager = await in_thread(actor_of, world.people["manager"])
        viewer = world.people["viewer"].pk
        await in_thread(members.remove_member, manager, world.team, user_id=viewer)
        assert await closed(opened) == sockets.ENDED


@pytest.mark.parametrize("query", ["offset=x", "stream=none", "offset=1e9"])
async def test_a_wrong_query_is_said(world, query) -> None:
    job, _token = await in_thread(make_job, world)
    where = f"/ws/v1/jobs/{job.pk}/logs?{query}"
    async with socket(where, token=await opened_by(world)) as opened:
        assert (await opened.receive_json_from(timeout=DEADLINE))["type"] == "error"
        assert await closed(opened) == consumers.WRONG_QUERY


async def test_being_followed_is_noted_for_ingest(world) -> None:
    job, token = await in_thread(make_job, world)
    assert not (await in_thread(post, token)).is_followed
    async with socket(path(job), token=await opened_by(world)) as opened:
        async with asyncio.timeout(DEADLINE):
            while not (await in_thread(post, token)).is_followed:
                assert await opened.receive_nothing(timeout=0.01)
        assert await opened.receive_nothing(timeout=0.01)
    await in_thread(LogCursor.objects.filter(pk=job.pk).update, followed_until=None)
    assert not (await in_thread(post, token)).is_followed
    assert await database_sync_to_async(text)(job) == b""
    assert get_channel_layer() is not None
