"""A job's samples from the agents' posts to REST and the socket."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from clusters.samples import rollup, tables
from jobs import consumers, follow
from jobs.logs import partitions
from jobs.models import Checkpoint, Job, JobEvent
from portal.core import clock
from portal.teams import sockets
from portal.teams.services import members
from tests.jobs.makers import OUT, chunk, make_job, post
from tests.people import World, actor_of, api_client, browser, make_world, token_of
from tests.sockets import DEADLINE, closed, in_thread, socket

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
CPU, GPU = "cpu_utilization_ratio", 'gpu_utilization_ratio{gpu="0"}'


@pytest.fixture
def world(db) -> World:
    return make_world()


@pytest.fixture
def now() -> int:
    return int(clock.now().timestamp())


def sample(at: float, **series: float) -> dict:
    return {"at": at, "series": {CPU: 0.5} | series}


def said(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()[:-6] + "Z"


def asked(world: World, job: Job, persona: str = "viewer", **query) -> dict:
    answer = api_client(world.people[persona]).get(f"/api/v1/jobs/{job.pk}/metrics", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_samples_come_out_as_they_were_posted_with_gaps_as_null(world, now) -> None:
    begin = now - 100 - now % 10
    job, token = make_job(world, phase="RUNNING", started_at=at(begin))
    samples = [sample(begin + age, **{GPU: age / 100}) for age in (0, 5, 60)]
    post(token, samples=samples)
    post(token, samples=samples)
    found = asked(world, job, **{"from": said(begin), "to": said(begin + 65), "step_seconds": 5})
    assert (found["from"], found["to"], found["step_seconds"]) == (said(begin), said(begin + 65), 5)
    assert set(found["series"]) == {CPU, GPU}
    values = dict(found["series"][GPU])
    assert [values[said(begin + age)] for age in (0, 5, 60)] == [0.0, 0.05, 0.6]
    assert said(begin + 10) not in values  # a pause between two samples is no gap
    assert values[said(begin + 20)] is None
    assert values[said(begin + 55)] is None


def test_the_whole_run_is_shown_when_nothing_is_asked(world, now) -> None:
    job, token = make_job(world, started_at=at(now - 1200), ended_at=at(now - 600))
    post(token, samples=[sample(now - 900), sample(now - 30)])
    found = asked(world, job)
    assert (found["from"], found["to"]) == (said(now - 1200), said(now - 600))
    assert [value for _at, value in found["series"][CPU] if value is not None] == [0.5]


def test_rollups_take_over_and_say_their_step(world, now) -> None:
    job, token = make_job(world, started_at=at(now - 3600))
    post(token, samples=[sample(now - age, **{CPU: float(age % 2)}) for age in range(1, 3000, 5)])
    rollup.roll_up()
    long_ago = said(now - 5 * 3600)
    found = asked(world, job, **{"from": long_ago, "step_seconds": 50})
    assert found["step_seconds"] == 60
    values = [value for _at, value in found["series"][CPU] if value is not None]
    assert 48 <= len(values) <= 51
    assert sum(values) / len(values) == pytest.approx(0.5, abs=0.02)
    assert asked(world, job, **{"from": said(now - 40 * 86400)})["step_seconds"] % 900 == 0


def test_ranks_are_labels_where_there_are_several(world, now) -> None:
    job, token = make_job(world, nodes=2, started_at=at(now - 60))
    for rank in (0, 1):
        post(token, rank=rank, samples=[sample(now - 10, **{GPU: 0.1 + rank})])
    both = asked(world, job)["series"]
    assert set(both) == {
        'cpu_utilization_ratio{rank="0"}',
        'cpu_utilization_ratio{rank="1"}',
        'gpu_utilization_ratio{gpu="0",rank="0"}',
        'gpu_utilization_ratio{gpu="0",rank="1"}',
    }
    one = asked(world, job, rank=1, names="gpu_")["series"]
    assert [value for _at, value in one[GPU] if value is not None] == [1.1]
    assert set(one) == {GPU}


def test_what_happened_is_on_the_time_axis(world, now) -> None:
    job, token = make_job(world, started_at=at(now - 600))
    JobEvent.objects.create(job=job, kind="phase", phase="RUNNING", at=at(now - 600))
    JobEvent.objects.create(job=job, kind="note", message="hello", at=at(now - 500))
    saved = {"folder": "/c", "name": "step-100", "at": now - 300, "seconds": 1.5, "bytes": 9}
    post(token, checkpoints=[saved])
    events = asked(world, job, **{"from": said(now - 601)})["events"]
    assert events[0] == {"at": said(now - 600), "kind": "phase", "name": "RUNNING"}
    assert events[1]["kind"] == "checkpoint"
    assert (events[1]["name"], events[1]["seconds"], events[1]["bytes"]) == ("step-100", 1.5, 9)
    later = asked(world, job, **{"from": said(now - 200)})["events"]
    assert [event for event in later if event["kind"] == "checkpoint"] == []
    assert Checkpoint.objects.count() == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "0001-01-01T00:00:00Z"}, "from"),
        ({"to": "9999-12-31T23:59:59Z"}, "to"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
        ({"step_seconds": "0"}, "step_seconds"),
        ({"step_seconds": "1e3"}, "step_seconds"),
        ({"step_seconds": "1", "from": "2026-01-01T00:00:00Z"}, "step_seconds"),
        ({"rank": "-1"}, "rank"),
    ],
)
def test_what_is_wrong_is_named(world, query, field) -> None:
    job, _token = make_job(world)
    answer = api_client(world.people["viewer"]).get(f"/api/v1/jobs/{job.pk}/metrics", query)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]


@pytest.mark.parametrize("span", [{"from": "1970-01-01T00:00:00Z"}, {"to": "2100-12-31T00:00:00Z"}])
def test_however_long_the_span_the_points_are_bounded(world, now, span) -> None:
    job, token = make_job(world, started_at=at(now - 60))
    post(token, samples=[sample(now - 10)])
    found = asked(world, job, **span)
    assert all(len(points) <= 302 for points in found["series"].values())


def test_the_report_has_the_means_of_the_whole_run(world, now, client) -> None:
    job, token = make_job(world, phase="SUCCEEDED", started_at=at(now - 90), ended_at=at(now))
    user = api_client(world.people["viewer"])
    assert user.get(f"/api/v1/jobs/{job.pk}/report").json()["mean_utilisation"] is None
    post(token, samples=[sample(now - 60, **{CPU: 0.2}), sample(now - 50, **{CPU: 0.6})])
    found = user.get(f"/api/v1/jobs/{job.pk}/report").json()["mean_utilisation"]
    assert found == {"gpu": None, "cpu": 0.4}
    post(token, samples=[sample(now - 40, **{CPU: 0.4, GPU: 0.9})])
    found = user.get(f"/api/v1/jobs/{job.pk}/report").json()["mean_utilisation"]
    assert found == {"gpu": 0.9, "cpu": 0.4}


def test_a_post_without_samples_costs_no_query(world, django_assert_num_queries) -> None:
    _job, token = make_job(world)
    partitions.prepare()
    tables.prepare()
    with django_assert_num_queries(5):
        post(token, chunk(OUT, 0, b"x"))
    with django_assert_num_queries(6):
        post(token, chunk(OUT, 1, b"x"), samples=[sample(clock.now().timestamp())])


# The socket --------------------------------------------------------------------------------------


async def opened_by(world: World):
    return await in_thread(token_of, world.people["viewer"], scopes=["read"])


def path(job: Job, since: str = "") -> str:
    return f"/ws/v1/jobs/{job.pk}/metrics" + (f"?since={since}" if since else "")


async def test_the_newest_comes_first_and_then_what_is_posted(world, now) -> None:
    job, token = await in_thread(make_job, world)
    await in_thread(post, token, samples=[sample(now - 9.5), sample(now - 4.25)])
    async with socket(path(job), token=await opened_by(world)) as opened:
        first = await opened.receive_json_from(timeout=DEADLINE)
        assert first == {
            "type": "sample",
            "at": said(now - 4.25),
            "rank": 0,
            "series": {CPU: 0.5},
        }
        await in_thread(post, token, samples=[sample(now, **{GPU: 0.25})])
        await in_thread(post, token, samples=[sample(now, **{GPU: 0.75})])
        second = await opened.receive_json_from(timeout=DEADLINE)
        assert (second["at"], second["series"][GPU]) == (said(now), 0.25)
        assert await opened.receive_nothing(timeout=0.05)


async def test_resuming_from_the_last_instant_loses_and_doubles_nothing(world, now) -> None:
    job, token = await in_thread(make_job, world)
    instants = [now - 50 + n + 0.123456 for n in range(40)]
    got, since = [], said(instants[0] - 1)
    for start in range(0, 40, 8):
        await in_thread(post, token, samples=[sample(one) for one in instants[start : start + 8]])
        async with socket(path(job, since), token=await opened_by(world)) as opened:
            for _one in range(5 if start < 32 else 20):
                got.append((await opened.receive_json_from(timeout=DEADLINE))["at"])
        since = got[-1]
    assert got == [said(one) for one in instants]


async def test_a_rank_that_is_late_is_not_passed_over(world, now, monkeypatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.2)
    job, token = await in_thread(make_job, world, nodes=2)
    await in_thread(post, token, rank=1, samples=[sample(now - 1000)])
    await in_thread(post, token, rank=0, samples=[sample(now)])
    async with socket(path(job), token=await opened_by(world)) as opened:
        async with asyncio.timeout(DEADLINE):
            for _newest in range(2):
                await opened.receive_json_from(timeout=DEADLINE)
        await in_thread(post, token, rank=1, samples=[sample(now - 990), sample(now - 985)])
        late = [await opened.receive_json_from(timeout=DEADLINE) for _ in range(2)]
        assert [(one["rank"], one["at"]) for one in late] == [
            (1, said(now - 990)),
            (1, said(now - 985)),
        ]
        assert list(late[0]["series"]) == ['cpu_utilization_ratio{rank="1"}']


async def test_a_hint_that_is_lost_costs_time_and_no_sample(world, now, monkeypatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.2)
    monkeypatch.setattr("portal.core.push.outbox.put", lambda *_given: None)
    job, token = await in_thread(make_job, world)
    async with socket(path(job), token=await opened_by(world)) as opened:
        await in_thread(post, token, samples=[sample(now)])
        assert (await opened.receive_json_from(timeout=DEADLINE))["at"] == said(now)


async def test_the_end_is_said_after_the_last_sample(world, now) -> None:
    job, token = await in_thread(make_job, world)
    async with socket(path(job), token=await opened_by(world)) as opened:
        ended = clock.now() - timedelta(seconds=1)
        await in_thread(
            Job.objects.filter(pk=job.pk).update, phase="FAILED", submitted_at=ended, ended_at=ended
        )
        await in_thread(post, token, samples=[sample(now)], exit={"code": 1, "signal": None})
        assert (await opened.receive_json_from(timeout=DEADLINE))["type"] == "sample"
        assert await opened.receive_json_from(timeout=DEADLINE) == {"type": "end"}
        assert await closed(opened) == consumers.DONE


async def test_losing_the_membership_ends_the_socket(world) -> None:
    job, _token = await in_thread(make_job, world)
    client = await in_thread(browser, world.people["viewer"])
    async with socket(path(job), client=client) as opened:
        manager = await in_thread(actor_of, world.people["manager"])
        viewer = world.people["viewer"].pk
        await in_thread(members.remove_member, manager, world.team, user_id=viewer)
        assert await closed(opened) == sockets.ENDED


async def test_a_wrong_instant_is_said(world) -> None:
    job, _token = await in_thread(make_job, world)
    async with socket(path(job, "now"), token=await opened_by(world)) as opened:
        assert (await opened.receive_json_from(timeout=DEADLINE))["type"] == "error"
        assert await closed(opened) == consumers.WRONG_QUERY
