"""The door of node agents over real HTTP: what is taken, what is refused, and how."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from clusters.selectors import agent_sha256, agent_source
from jobs import ingest
from jobs.logs import posts, store
from jobs.models import Attempt, Checkpoint, Job
from jobs.services import attempts
from portal.core import disk
from portal.teams.services import secrets
from tests.doubles.server import running
from tests.jobs.makers import ERR, OUT, chunk, make_job, text
from tests.people import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture
def world(db) -> World:
    return make_world()


@pytest.fixture
def door() -> Iterator[httpx.Client]:
    with running() as url, httpx.Client(base_url=f"{url}/api/agent/v1", timeout=20) as client:
        yield client


def bearer(job: Job) -> dict[str, str]:
    return {"Authorization": f"Bearer {attempts.token_of(job)}"}


def test_a_post_is_answered_with_what_is_there_and_the_pace(world, door) -> None:
    job, _hash = make_job(world)
    body = {
        "agent": {"version": "1", "host": "node-1", "python": "3.6.8", "boot": "x"},
        "chunks": [chunk(OUT, 0, b"hello\n"), chunk(ERR, 0, b"oh\n")],
        "checkpoints": [
            {"name": "step-1", "folder": "/c", "at": 1.8e9, "seconds": 1.5, "bytes": 7}
        ],
        "exit": {"code": 3, "signal": None, "started_at": 1.8e9, "ended_at": 1.8e9, "error": ""},
    }
    for _again in range(2):
        answer = door.post("/posts", json=body, headers=bearer(job))
        assert answer.status_code == 200
        assert answer.json() == {
            "acked": {OUT: 6, ERR: 3},
            "flush_after_ms": 1000,
            "stop": None,
            "sample_every_seconds": 5,
        }
    assert text(job) == b"hello\noh\n"
    attempt = Attempt.objects.get(job=job)
    assert (attempt.agent["host"], attempt.exit["code"]) == ("node-1", 3)
    assert Checkpoint.objects.get(job=job).bytes == 7


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": "Bearer " + "x" * 43}, 401),
        ({"Authorization": "Basic " + "x" * 43}, 401),
        ({"Authorization": "Bearer \xff" + "x" * 43}, 401),
    ],
)
def test_nobody_posts_without_the_token_of_the_attempt(world, door, headers, status) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    answer = door.post("/posts", json={"chunks": []}, headers=raw)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_token_writes_its_own_job_alone(world, door) -> None:
    mine, _hash = make_job(world)
    other, _hash = make_job(world)
    door.post("/posts", json={"chunks": [chunk(OUT, 0, b"mine")]}, headers=bearer(mine))
    assert (text(mine), text(other)) == (b"mine", b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"chunks": [{}]}', b'{"chunks": [1]}', b"\xff\xfe", b'{"rank": -1}'],
)
def test_a_malformed_or_cut_post_is_a_clear_error_and_changes_nothing(world, door, body) -> None:
    job, _hash = make_job(world)
    answer = door.post("/posts", content=body, headers=bearer(job))
    assert answer.status_code == 400
    assert answer.json()["code"] == "malformed"
    assert text(job) == b""


def test_a_post_that_is_too_large_is_refused(world, door) -> None:
    job, _hash = make_job(world)
    answer = door.post("/posts", content=b" " * (posts.MOST_BYTES * 2), headers=bearer(job))
    assert answer.status_code == 413


def test_methods_and_paths_that_are_not_there(door) -> None:
    assert door.get("/posts").status_code == 405
    assert door.post("/nothing").status_code == 404
    assert door.get("/../v1/me").status_code in (401, 403, 404)


def test_the_agent_comes_as_the_script_expects_it(door) -> None:
    answer = door.get("/agent.py")
    assert answer.content == agent_source()
    assert len(agent_sha256()) == 64


def test_a_full_disk_lets_agents_keep_their_lines(world, door, settings, monkeypatch) -> None:
    job, _hash = make_job(world)
    monkeypatch.setattr(disk, "_last", None)
    settings.DISK_FLOOR_BYTES = 1 << 60
    body = {"chunks": [chunk(OUT, 0, b"kept by the agent")]}
    answer = door.post("/posts", json=body, headers=bearer(job))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    settings.DISK_FLOOR_BYTES = 0
    assert door.post("/posts", json=body, headers=bearer(job)).status_code == 200
    assert text(job) == b"kept by the agent"


def test_posts_of_many_agents_at_once_are_each_answered(world, door) -> None:
    """The bundles hold posts of several jobs, and a malformed one among them hurts nobody."""
    made = [make_job(world)[0] for _ in range(6)]
    headers = {job.pk: bearer(job) for job in made}
    failed: list[str] = []

    def speak(job: Job) -> None:
        for n in range(25):
            line = b"%s %03d\n" % (job.pk.encode(), n)
            body = {"chunks": [chunk(OUT, n * len(line), line)]}
            answer = door.post("/posts", json=body, headers=headers[job.pk])
            if answer.status_code != 200 or answer.json()["acked"][OUT] != (n + 1) * len(line):
                failed.append(answer.text)
            door.post("/posts", content=b"{", headers=headers[job.pk])

    threads = [threading.Thread(target=speak, args=(job,)) for job in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for job in made:
        wanted = b"".join(b"%s %03d\n" % (job.pk.encode(), n) for n in range(25))
        assert text(job) == wanted


def test_a_post_that_cannot_be_stored_holds_up_no_other(world) -> None:
    """None that `posts.parse` lets through is known; the next type of column may bring one."""
    (bad, bad_hash), (good, good_hash) = make_job(world), make_job(world)
    line = posts.Chunk(stream=OUT, offset=0, at=1.8e9, data=b"line\n")
    given = [
        posts.Post(token_hash=bad_hash, rank=0, restart=0, agent={"host": "\0"}, chunks=[line]),
        posts.Post(token_hash=good_hash, rank=0, restart=0, agent={}, chunks=[line]),
    ]

    async def write() -> list[store.Answer]:
        writer = ingest.Writer()
        return await asyncio.gather(*(writer.write(post) for post in given))

    assert [answer.status for answer in asyncio.run(write())] == [400, 200]
    assert (text(bad), text(good)) == (b"", b"line\n")


def test_secrets_are_taken_by_one_nonce(world, door) -> None:
    secrets.create_secret(world.actor("manager"), world.team, name="HF_TOKEN", value="sésame")
    job, _hash = make_job(world)
    spec = {**job.version.spec, "secrets": {"TOKEN": "HF_TOKEN"}}
    type(job.version).objects.filter(pk=job.version_id).update(spec=spec)
    Job.objects.filter(pk=job.pk).update(phase="RUNNING")
    headers = bearer(job)
    first = door.post("/secrets", json={"nonce": "a" * 32}, headers=headers)
    assert first.json() == {"secrets": {"TOKEN": "sésame"}}
    assert first.headers["cache-control"] == "no-store"
    assert door.post("/secrets", json={"nonce": "a" * 32}, headers=headers).status_code == 200
    assert door.post("/secrets", json={"nonce": "b" * 32}, headers=headers).status_code == 409
    assert door.post("/secrets", json={"nonce": ["b"]}, headers=headers).status_code == 400
    Job.objects.filter(pk=job.pk).update(phase="SUCCEEDED")
    assert door.post("/secrets", json={"nonce": "a" * 32}, headers=headers).status_code == 422
