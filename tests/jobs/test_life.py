"""A job's life on the real local scheduler, with passes run by hand and by many workers."""

import os
import re
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs import reconcile
from jobs.logs import keep, pull, read
from jobs.models import Job
from jobs.selectors import is_log_complete, newest_of, usage_of, version_for
from jobs.services import again, builtin, definitions, jobs
from jobs.services.jobs import Wanted
from jobs.states import Phase, Reason
from portal.core.errors import Conflict, Invalid, NotAllowed, Refused
from portal.teams.services import limits, secrets
from tests.doubles.server import running
from tests.people import World, api_client, make_world

SECONDS = 30
CALM = ["QUEUED", "ADMITTED", "SUBMITTED", "RUNNING"]


@pytest.fixture
def world(transactional_db, settings, tmp_path) -> Iterator[World]:
    settings.LOCAL_JOBS_FOLDER = tmp_path / "jobs"
    settings.HAS_WALL = False
    world = make_world()
    clusters.ensure_local().teams.add(world.team)
    with running() as address:
        settings.LOOPBACK_URL = address
        yield world


def submit(
    world: World,
    script: str,
    *,
    by: str = "member",
    wanted: dict[str, Any] | None = None,
    **spec: Any,
) -> Job:
    """Submit a script of its own definition; `wanted` is what the person gives at launch."""
    raw = {"regime": "smoke", "time_limit_seconds": 60, "script": script, **spec}
    row = definitions.create_definition(
        world.actor("manager"), world.team, slug=f"d{time.monotonic_ns()}", name="Test", spec=raw
    )
    return jobs.submit(
        world.actor(by),
        Wanted(
            version=newest_of(row),
            team=world.team,
            cluster=facts_of(clusters.ensure_local()),
            **(wanted or {}),
        ),
    )


def until(job: Job, *phases: Phase) -> Job:
    """Sweep until the job is in one of the phases."""
    deadline = time.monotonic() + SECONDS
    while job.phase not in phases:
        assert time.monotonic() < deadline, (job.phase, job.reason, job.message, job.seen)
        reconcile.sweep()
        job.refresh_from_db()
    return job


def story(job: Job) -> list[str]:
    return list(job.story.filter(kind="phase").order_by("pk").values_list("phase", flat=True))


def output(job: Job) -> str:
    parts = read.whole(read.head(job.pk, stream="stdout"))
    return b"".join(part.data for part in parts).decode()


@async_to_sync
async def sent(response: Any) -> bytes:
    """Return the body of a streamed answer."""
    return b"".join([piece async for piece in response.streaming_content])


def test_from_the_line_to_the_end(world, settings) -> None:
    job = submit(
        world,
        "echo hello {{ who }}; env | grep ^SLIPWAY_; sleep 0.5",
        parameters={"who": {"type": "string"}},
        wanted={"parameters": {"who": "$(id) '"}},
    )
    job = until(job, Phase.SUCCEEDED)
    assert (job.reason, job.exit_code, job.attempt) == (Reason.COMPLETED, 0, 1)
    assert job.started_at < job.ended_at
    assert [p for p in story(job) if p != "RUNNING"] == [*CALM[:3], "SUCCEEDED"]
    lines = output(job).splitlines()
    assert lines[0] == "hello $(id) '"
    assert f"SLIPWAY_JOB_ID={job.pk}" in lines
    assert usage_of(world.team).running_jobs == 0


def test_a_command_gets_its_arguments_whole(world, settings) -> None:
    row = definitions.create_definition(
        world.actor("manager"),
        world.team,
        slug="argv",
        name="Argv",
        spec={
            "regime": "batch",
            "time_limit_seconds": 60,
            "command": ["printf", "<%s>", "a b", "{{ x }}"],
            "parameters": {"x": {}},
        },
    )
    wanted = Wanted(
        version=newest_of(row),
        team=world.team,
        cluster=facts_of(clusters.ensure_local()),
        parameters={"x": '\'; touch /tmp/x "$HOME" `id`'},
    )
    job = until(jobs.submit(world.actor("member"), wanted), Phase.SUCCEEDED)
    assert output(job) == '<a b><\'; touch /tmp/x "$HOME" `id`>'


def test_an_exit_code_is_a_failure_with_its_number(world) -> None:
    job = until(submit(world, "exit 3"), Phase.FAILED)
    assert (job.reason, job.exit_code) == (Reason.EXIT_CODE, 3)


def test_a_stop_ends_by_its_reason_and_is_told_who(world) -> None:
    job = until(submit(world, "sleep 300"), Phase.RUNNING)
    jobs.stop(world.actor("member"), job)
    jobs.stop(world.actor("manager"), job)
    job = until(job, Phase.CANCELLED)
    assert job.reason == Reason.USER
    assert story(job) == [*CALM, "STOPPING", "CANCELLED"]
    wish = job.story.get(kind="wish")
    assert wish.actor_label == "member"
    with pytest.raises(Conflict, match="ended already"):
        jobs.stop(world.actor("member"), job)


def test_a_job_in_line_stops_without_having_run(world) -> None:
    limits.set_limits(world.actor("admin"), world.team, wanted={"running_jobs": 0})
    job = submit(world, "true")
    reconcile.sweep()
    job.refresh_from_db()
    assert (job.phase, job.reason) == (Phase.QUEUED, Reason.WAITING_FOR_QUOTA)
    assert "paused" in job.message
    jobs.stop(world.actor("member"), job)
    job = until(job, Phase.CANCELLED)
    assert story(job) == ["QUEUED", "CANCELLED"]


def test_the_checkpoint_signal_comes_first_and_the_exit_code_is_kept(world, settings) -> None:
    script = "trap 'echo saved; exit 7' USR1\necho up\nwhile :; do sleep 0.1; done"
    checkpoint = {"path": "ckpt", "signal": "USR1", "grace_seconds": 20}
    job = until(submit(world, script, checkpoint=checkpoint), Phase.RUNNING)
    while "up" not in output(job):
        os.sched_yield()
    jobs.stop(world.actor("member"), job)
    job = until(job, Phase.CANCELLED)
    assert (job.exit_code, output(job)) == (7, "up\nsaved\n")


def test_the_time_limit_ends_a_job(world) -> None:
    job = until(submit(world, "sleep 300", time_limit_seconds=1), Phase.FAILED)
    assert job.reason == Reason.TIME_LIMIT
    assert (job.ended_at - job.started_at).total_seconds() < 5


def test_a_definition_may_ask_for_another_attempt(world) -> None:
    retry = {"max_attempts": 2, "on": ["exit_code"]}
    job = until(submit(world, "exit $SLIPWAY_ATTEMPT", retry=retry), Phase.FAILED)
    assert (job.attempt, job.exit_code) == (2, 2)
    assert story(job).count("QUEUED") == 2


def test_a_person_runs_it_again_as_a_new_job(world) -> None:
    job = until(submit(world, "exit 1"), Phase.FAILED)
    second = again.retry(world.actor("member"), job)
    assert (second.retry_of_id, second.pk == job.pk) == (job.pk, False)
    until(second, Phase.FAILED)
    running = until(submit(world, "sleep 300"), Phase.RUNNING)
    with pytest.raises(Conflict, match="not ended"):
        again.retry(world.actor("member"), running)
    jobs.stop(world.actor("member"), running)
    until(running, Phase.CANCELLED)


@pytest.mark.parametrize(
    ("spec", "wanted", "code"),
    [
        ({"image": "python@sha256:0"}, {}, "image_unsupported"),
        ({"secrets": {"HF": "HF_TOKEN"}}, {}, "secret_missing"),
        ({"resources": {"gpus_per_node": 8}}, {}, "exceeds_quota"),
        ({}, {"resources": {"nodes": 9}}, "exceeds_quota"),
    ],
)
def test_what_can_never_start_is_refused_with_the_remedy(world, spec, wanted, code) -> None:
    limits.set_limits(world.actor("admin"), world.team, wanted={"gpus": 4, "nodes": 2})
    with pytest.raises(Refused) as caught:
        submit(world, "true", wanted=wanted, **spec)
    assert caught.value.code == code
    assert not Job.objects.exists()


def test_wrong_fields_have_pointers(world) -> None:
    wanted = {"parameters": {"y": 1}, "resources": {"gpus": 1}}
    with pytest.raises(Invalid) as caught:
        submit(world, "true", parameters={"x": {"type": "integer"}}, wanted=wanted)
    pointers = {error.pointer for error in caught.value.errors}
    assert pointers == {"/parameters/x", "/parameters/y", "/resources/gpus"}


def test_viewers_and_strangers_launch_nothing(world) -> None:
    with pytest.raises(NotAllowed):
        submit(world, "true", by="viewer")
    clusters.ensure_local().teams.clear()
    with pytest.raises(Refused, match="assign the cluster"):
        submit(world, "true")


def test_limits_hold_and_the_next_starts_when_one_ends(world) -> None:
    limits.set_limits(world.actor("admin"), world.team, wanted={"running_jobs": 1})
    first, second = (submit(world, "sleep 300") for _ in range(2))
    until(first, Phase.RUNNING)
    second.refresh_from_db()
    assert (second.phase, second.reason) == (Phase.QUEUED, Reason.WAITING_FOR_QUOTA)
    jobs.stop(world.actor("member"), first)
    until(first, Phase.CANCELLED)
    until(second, Phase.RUNNING)
    jobs.stop(world.actor("member"), second)
    until(second, Phase.CANCELLED)


@pytest.mark.kills
def test_many_workers_at_once_run_each_job_once(world, settings) -> None:
    """Buys that turns, keys and locks keep eight workers from running anything twice."""
    made = [submit(world, "echo once") for _ in range(6)]

    def work() -> None:
        try:
            for _ in range(15):
                reconcile.sweep()
        finally:
            connections.close_all()

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for job in made:
        until(job, Phase.SUCCEEDED)
        assert output(job) == "once\n"
        assert story(job).count("SUCCEEDED") == 1


def test_a_scheduler_that_cannot_be_reached_ends_nothing(world, settings) -> None:
    job = until(submit(world, "sleep 300"), Phase.RUNNING)
    folder = settings.LOCAL_JOBS_FOLDER
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("not a folder")
    cluster = clusters.ensure_local()
    clusters.look_soon(cluster.pk)
    reconcile.observe(cluster.pk)
    cluster.refresh_from_db()
    job.refresh_from_db()
    assert cluster.unavailable_since is not None
    assert (job.phase, job.absent_since) == (Phase.RUNNING, None)
    folder.unlink()
    aside.rename(folder)
    clusters.look_soon(cluster.pk)
    jobs.stop(world.actor("member"), job)
    until(job, Phase.CANCELLED)
    cluster.refresh_from_db()
    assert cluster.unavailable_since is None


def test_output_is_read_by_offset_over_rest(world) -> None:
    job = until(submit(world, "printf 'aaaé'; sleep 0.3; printf err >&2"), Phase.SUCCEEDED)
    client = api_client(world.people["viewer"])
    path = f"/api/v1/jobs/{job.pk}/logs"
    whole = {"offset": 0, "next_offset": 5, "complete": True, "size": 5, "lines": 0, "text": "aaaé"}
    assert client.get(f"{path}?stream=stdout").json() == whole
    cut = client.get(f"{path}?limit=4").json()
    assert (cut["text"], cut["next_offset"], cut["complete"]) == ("aaa", 3, False)
    assert client.get(f"{path}?offset=3").json()["text"] == "éerr"
    assert client.get(f"{path}?stream=stderr").json()["text"] == "err"
    assert client.get(path).json()["text"] == "aaaéerr"
    assert client.get(f"{path}?offset=-3").json()["text"] == "err"
    assert client.get(f"{path}?offset=x").status_code == 400
    assert client.get(f"{path}?stream=none").status_code == 400
    assert api_client(world.people["other"]).get(path).status_code == 404
    raw = client.get(path, HTTP_ACCEPT="text/plain", HTTP_RANGE="bytes=3-5")
    assert (raw.status_code, raw["Content-Range"]) == (206, "bytes 3-5/8")
    assert sent(raw).decode() == "ée"
    found = client.get(f"{path}/search?q=ERR").json()
    assert found == {
        "hits": [{"offset": 5, "line": 0, "text": "aaaéerr"}],
        "next_offset": 8,
        "complete": True,
    }


def test_the_built_in_complete_run_trains_restores_and_measures(world, settings) -> None:
    """Buys the first job that every newcomer launches."""
    assert builtin.ensure_definitions() == ["complete-run", "hello-gpu", "shell-script"]
    assert builtin.ensure_definitions() == []
    version = version_for(world.actor("member"), world.team, "complete-run")
    wanted = Wanted(
        version=version,
        team=world.team,
        cluster=facts_of(clusters.ensure_local()),
        parameters={"steps": 600},
    )
    job = until(jobs.submit(world.actor("member"), wanted), Phase.SUCCEEDED)
    said = output(job)
    assert "the loss is the same to the last bit" in said
    for figure in ("step time p50", "samples per second", "checkpoint p50", "inference p95"):
        assert re.search(rf"{figure}.*\s\d+\.\d+$", said, re.MULTILINE), figure


def test_what_fails_before_the_agent_is_in_the_log_all_the_same(world) -> None:
    job = submit(world, "echo never", checkpoint={"path": "/proc/nowhere"})
    job = until(job, Phase.FAILED)
    assert job.exit_code == 125
    pull.pull(job.pk)
    pull.pull(job.pk)
    log = b"".join(part.data for part in read.whole(read.head(job.pk)))
    assert b"/proc/nowhere" in log
    assert log.count(b"/proc/nowhere") == 1
    assert is_log_complete(job.pk)


def test_a_job_goes_on_from_its_last_checkpoint_as_a_new_one(world) -> None:
    script = (
        "echo resume=${SLIPWAY_RESUME_FROM:-none}\n"
        'echo saved > "$SLIPWAY_CHECKPOINT_DIR/one.tmp"\n'
        'mv "$SLIPWAY_CHECKPOINT_DIR/one.tmp" "$SLIPWAY_CHECKPOINT_DIR/one"\n'
        '[ -z "${SLIPWAY_RESUME_FROM:-}" ] || cat "$SLIPWAY_RESUME_FROM"\n'
        "sleep 1.5\n"
    )
    with pytest.raises(Conflict, match="No complete checkpoint"):
        again.resume(world.actor("member"), until(submit(world, "true"), Phase.SUCCEEDED))
    job = until(submit(world, script, checkpoint={"path": "saves"}), Phase.SUCCEEDED)
    assert output(job) == "resume=none\n"
    assert job.checkpoints.get().name == "one"
    second = until(again.resume(world.actor("member"), job), Phase.SUCCEEDED)
    assert second.resumed_from_id == job.pk
    lines = output(second).splitlines()
    assert lines[0].endswith("/saves/one")
    assert lines[1] == "saved"


def test_a_secret_reaches_the_command_and_never_the_log(world) -> None:
    manager = world.actor("manager")
    secrets.create_secret(manager, world.team, name="HF_TOKEN", value="tell-nobody-1")
    job = submit(
        world,
        'echo "$TOKEN" | rev; echo "it is $TOKEN!"; printf %s "$TOKEN" | base64',
        secrets={"TOKEN": "HF_TOKEN"},
    )
    job = until(job, Phase.SUCCEEDED)
    lines = output(job).splitlines()
    assert lines[0] == "1-ydobon-llet"
    assert lines[1] == "it is ••••!"
    assert "••••" in lines[2]
    assert "dGVsbC1ub2JvZHkt" not in lines[2]


def test_what_is_old_is_forgotten_with_its_folder(world, settings) -> None:
    job = until(submit(world, "echo kept"), Phase.SUCCEEDED)
    folder = settings.LOCAL_JOBS_FOLDER / f"{job.pk}-1"
    keep.keep()
    assert folder.exists()
    settings.LOG_DAYS = -1
    keep.keep()
    assert not folder.exists()
    assert output(job).startswith("[slipway: 5 bytes are not kept any more")
