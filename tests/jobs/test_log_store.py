"""The log store: whatever way posts come, each byte is there once, in order, and stays readable."""

import json
import random
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from celery.exceptions import SoftTimeLimitExceeded
from django.core.files.storage import default_storage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.api import logs as rest_logs
from jobs.logs import keep, partitions, posts, pull, read, search, store
from jobs.logs.frames import Row, pack, unpack
from jobs.models import Attempt, Job, LogCursor
from jobs.plan import key_of
from jobs.selectors import is_log_complete
from jobs.services import attempts
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound
from portal.teams.services import secrets as team_secrets
from tests.jobs.makers import ERR, OUT, chunk, make_job, post, text
from tests.people import World, make_world


@pytest.fixture
def world(db) -> World:
    return make_world()


def test_streams_are_merged_as_they_came_and_kept_apart(world) -> None:
    job, token = make_job(world)
    answer = post(token, chunk(OUT, 0, b"one\n"), chunk(ERR, 0, b"bad\n"), chunk(OUT, 4, b"two\n"))
    assert (answer.status, answer.acked) == (200, {OUT: 8, ERR: 4})
    assert text(job) == b"one\nbad\ntwo\n"
    assert text(job, OUT) == b"one\ntwo\n"
    assert text(job, ERR) == b"bad\n"
    head = read.head(job.pk)
    assert (head.size, head.lines) == (12, 3)
    lines = [(p.offset, p.line, p.stream) for p in read.read(head, offset=0, limit=99).parts]
    assert lines == [(0, 0, OUT), (4, 1, ERR), (8, 2, OUT)]


def test_what_was_there_already_is_cut_off_and_a_hole_is_not_taken(world) -> None:
    job, token = make_job(world)
    post(token, chunk(OUT, 0, b"abc"))
    assert post(token, chunk(OUT, 0, b"abcde")).acked[OUT] == 5
    assert post(token, chunk(OUT, 2, b"c")).acked[OUT] == 5
    assert post(token, chunk(OUT, 9, b"zz")).acked[OUT] == 5
    assert text(job) == b"abcde"


def test_a_gap_is_a_line_that_people_see(world) -> None:
    job, token = make_job(world)
    post(token, chunk(OUT, 0, b"a\n"))
    gap = {"stream": OUT, "offset": 2, "at": 1.0, "gap": 5000, "reason": "spool_full"}
    assert post(token, gap, chunk(OUT, 5002, b"z\n")).acked[OUT] == 5002 + 2
    said = b"[slipway: 5,000 bytes of stdout are missing here: spool_full]\n"
    assert text(job) == b"a\n" + said + b"z\n"
    gaps = [part.gap for part in read.read(read.head(job.pk), offset=0, limit=999).parts]
    assert gaps == ["", "spool_full", ""]


def test_ranks_restarts_and_attempts_are_sources_of_their_own(world) -> None:
    job, token = make_job(world, nodes=2)
    post(token, chunk(OUT, 0, b"a0"), rank=0)
    post(token, chunk(OUT, 0, b"a1"), rank=1)
    post(token, chunk(OUT, 0, b"r1"), restart=1)
    Job.objects.filter(pk=job.pk).update(attempt=2)
    job.refresh_from_db()
    second = attempts.digest_of(attempts.token_of(job))
    bodies = [json.dumps({"chunks": [chunk(OUT, 0, data)]}).encode() for data in (b"b0", b"late")]
    late = posts.parse(json.dumps({"chunks": [chunk(OUT, 2, b"++")]}).encode(), token_hash=token)
    answers = store.take([posts.parse(bodies[0], token_hash=second), late])
    assert [answer.status for answer in answers] == [200, 200]
    assert text(job) == b"a0a1r1b0++"
    assert text(job, rank=1) == b"a1"
    assert text(job, attempt=2) == b"b0"


def test_a_rank_or_restart_that_the_job_cannot_have_is_not_taken(world) -> None:
    job, token = make_job(world, nodes=2)
    assert post(token, chunk(OUT, 0, b"one"), rank=1).status == 200
    assert post(token, chunk(OUT, 0, b"two"), rank=2).status == 400
    assert post(token, chunk(OUT, 0, b"far"), restart=store.RESTARTS_AHEAD + 1).status == 400
    assert text(job) == b"one"


def test_a_token_ends_an_hour_after_its_job(world) -> None:
    job, token = make_job(world)
    assert post("0" * 64, chunk(OUT, 0, b"x")).status == 401
    now = clock.now()
    Job.objects.filter(pk=job.pk).update(ended_at=now - timedelta(minutes=59), phase="FAILED")
    assert post(token, chunk(OUT, 0, b"x")).status == 200
    Job.objects.filter(pk=job.pk).update(ended_at=now - timedelta(minutes=61))
    assert post(token, chunk(OUT, 1, b"y")).status == 410
    assert text(job) == b"x"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_posts_in_any_order_and_number_give_each_byte_once(world, data) -> None:
    """An agent that repeats, splits and reorders, and rewinds to what is acknowledged."""
    job, token = make_job(world)
    source = {
        name: data.draw(st.binary(min_size=1, max_size=400), label=name) for name in (OUT, ERR)
    }
    chaos = random.Random(data.draw(st.integers(0, 1 << 30)))
    acked = {OUT: 0, ERR: 0}
    for _round in range(200):
        if all(acked[name] == len(source[name]) for name in source):
            break
        chunks = []
        for _piece in range(chaos.randint(1, 4)):
            name = chaos.choice((OUT, ERR))
            begin = chaos.choice((acked[name], chaos.randint(0, len(source[name]))))
            piece = source[name][begin : begin + chaos.randint(1, 90)]
            chunks.append(chunk(name, begin, piece))
        acked = post(token, *chunks).acked
    assert {name: text(job, name) for name in source} == source
    merged = text(job)
    assert len(merged) == sum(map(len, source.values()))
    size = len(merged)
    for offset in range(0, size, 37):
        window = read.read(read.head(job.pk), offset=offset, limit=50)
        got = b"".join(part.data for part in window.parts)
        assert got
        assert merged[offset:].startswith(got)
        assert window.next_offset == offset + len(got)
    before = {name: text(job, name) for name in ("all", OUT, ERR)}
    keep.compact(job.pk)
    assert read.head(job.pk).is_archived
    assert {name: text(job, name) for name in before} == before
    assert post(token, chunk(OUT, acked[OUT], b"late")).status == 410


def test_a_log_over_its_limit_keeps_first_and_newest_half_with_a_visible_gap(
    world, settings
) -> None:
    settings.LOG_MAX_BYTES = 1000
    job, token = make_job(world)
    for start in range(0, 5000, 100):
        post(token, chunk(OUT, start, f"{start:<99}\n".encode()))
    keep.drop_middle(LogCursor.objects.get(pk=job.pk))
    whole = text(job)
    assert whole.startswith(b"0 ")
    assert whole.endswith(f"{4900:<99}\n".encode())
    assert b"[slipway: 4,000 bytes are not kept here" in whole
    assert read.read(read.head(job.pk), offset=700, limit=10).next_offset >= 4500
    post(token, exit={"code": 0, "signal": None})
    keep.compact(job.pk)
    assert text(job) == whole


def test_finished_logs_are_compacted_and_days_go_once_nobody_needs_them(world, settings) -> None:
    job, token = make_job(world, phase="SUCCEEDED")
    post(token, chunk(OUT, 0, b"line\n" * 100), exit={"code": 0, "signal": None})
    running, other = make_job(world)
    post(other, chunk(OUT, 0, b"alive\n"))
    keep.keep()
    assert read.head(job.pk).is_archived
    assert not read.head(running.pk).is_archived
    today = LogCursor.objects.get(pk=running.pk).first_day
    assert partitions.is_needed(today)
    keep.compact(running.pk)
    assert not partitions.is_needed(today)
    partitions.drop(today)
    assert text(job) == b"line\n" * 100
    partitions.prepare()
    settings.LOG_DAYS = -1
    keep.keep()
    assert text(job).startswith(b"[slipway: 500 bytes are not kept any more")


def test_complete_means_that_the_agent_has_said_so(world) -> None:
    job, token = make_job(world)
    Job.objects.filter(pk=job.pk).update(submitted_at="2026-01-01T00:00Z")
    assert not is_log_complete(job.pk)
    Job.objects.filter(pk=job.pk).update(phase="SUCCEEDED")
    assert not is_log_complete(job.pk)
    post(token, exit={"code": 0, "signal": None})
    assert is_log_complete(job.pk)
    assert Attempt.objects.get(job=job).exit["code"] == 0


def test_search_goes_in_stretches_and_tail_finds_lines(world) -> None:
    job, token = make_job(world)
    lines = b"".join(b"%06d value\n" % n for n in range(20_000))
    for start in range(0, len(lines), 200_000):
        post(token, chunk(OUT, start, lines[start : start + 200_000]))
    log = read.head(job.pk)
    found = search.search(log, "019999 VALUE", offset=0)
    assert [(hit.line, hit.text) for hit in found.hits] == [(19_999, "019999 value")]
    many = search.search(log, "value", offset=0)
    assert len(many.hits) == search.MOST_HITS
    assert not many.complete
    after = search.search(log, "value", offset=many.next_offset)
    assert after.hits[0].line == search.MOST_HITS
    offset = search.last_lines(log, 3)
    assert read.read(log, offset=offset, limit=99).parts[0].data.startswith(b"019997 value")
    assert search.last_lines(log, 90_000) == 0


def test_secrets_are_given_to_one_agent_of_a_living_job(world) -> None:
    team_secrets.create_secret(world.actor("manager"), world.team, name="HF_TOKEN", value="tell")
    job, token = make_job(world)
    with pytest.raises(NotFound):
        attempts.take_secrets(token, nonce="a" * 16)
    spec = {**job.version.spec, "secrets": {"TOKEN": "HF_TOKEN"}}
    type(job.version).objects.filter(pk=job.version_id).update(spec=spec)
    Job.objects.filter(pk=job.pk).update(phase="SUBMITTED")
    assert attempts.take_secrets(token, nonce="a" * 16) == {"TOKEN": "tell"}
    assert attempts.take_secrets(token, nonce="a" * 16) == {"TOKEN": "tell"}
    with pytest.raises(Conflict):
        attempts.take_secrets(token, nonce="b" * 16)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'{"chunks": [{"stream": "stdin", "offset": 0, "at": 1}]}',
        b'{"chunks": [{"stream": "stdout", "offset": -1, "at": 1}]}',
        b'{"chunks": [{"stream": "stdout", "offset": 0, "at": 1e400}]}',
        b'{"chunks": [{"stream": "stdout", "offset": 0, "at": 1, "data": "%%"}]}',
        b'{"chunks": {"a": 1}}',
        b'{"samples": [{"at": 1, "series": {"a b": 1}}]}',
        b'{"samples": [{"at": 1, "series": {"a": NaN}}]}',
        b'{"rank": true}',
        b'{"exit": 7}',
        b"[" * 100_000,
    ],
)
def test_a_malformed_post_is_refused_whole(body) -> None:
    with pytest.raises(Invalid):
        posts.parse(body, token_hash="0")


@given(st.lists(st.tuples(st.sampled_from((OUT, ERR)), st.binary(min_size=1, max_size=300))))
def test_frames_give_back_what_was_packed(pieces) -> None:
    rows, position, own = [], 0, {OUT: 0, ERR: 0}
    for stream, data in pieces:
        rows.append(
            Row(
                position=position,
                line=position,
                stream=stream,
                stream_position=own[stream],
                stream_line=0,
                attempt=1,
                restart=0,
                rank=0,
                at=1.25,
                gap="",
                data=data,
            )
        )
        position, own[stream] = position + len(data), own[stream] + len(data)
    again = [row for frame, _covers in pack(rows) for row in unpack(frame)]
    assert again == rows


def test_an_empty_log_needs_no_object(world) -> None:
    job, _token = make_job(world)
    keep.compact(job.pk)
    assert LogCursor.objects.get(pk=job.pk).archive == ""
    assert not default_storage.exists(f"logs/{job.pk[:8]}/{job.pk}.log.z")


def test_one_rank_is_read_to_its_end_whatever_lies_between(world) -> None:
    """In an archive a whole stretch may be of others; a limit may fall within a character."""
    job, token = make_job(world, nodes=2)
    for start in range(0, 900_000, 100_000):
        post(token, chunk(OUT, start, b"x" * 100_000), rank=0)
    post(token, chunk(OUT, 0, "äöü".encode() * 5), rank=1)
    for _archived in range(2):
        log, got, offset = read.head(job.pk), b"", 0
        while offset < log.size:
            window = read.read(log, offset=offset, limit=9, only=read.Only(rank=1))
            got += b"".join(part.data for part in window.parts)
            assert window.next_offset > offset
            offset = window.next_offset
        assert got.decode() == "äöü" * 5
        keep.compact(job.pk)


def test_the_last_lines_are_found_among_many_small_rows(world) -> None:
    job, token = make_job(world)
    for number in range(read.MOST_ROWS + 20):
        post(token, chunk(OUT, 5 * number, b"%04d\n" % number))
    log = read.head(job.pk)
    assert search.last_lines(log, 2) == log.size - 10
    assert search.last_lines(log, read.MOST_ROWS + 10) == 50


def test_what_is_found_before_a_hole_is_where_it_is_said_to_be(world, settings) -> None:
    settings.LOG_MAX_BYTES = 1000
    job, token = make_job(world)
    for start in range(0, 5000, 100):
        post(token, chunk(OUT, start, f"line {start:<94}\n".encode()))
    keep.drop_middle(LogCursor.objects.get(pk=job.pk))
    found = search.search(read.head(job.pk), "line", offset=0)
    kept = [*range(0, 500, 100), *range(4500, 5000, 100)]
    assert [(hit.offset, hit.line) for hit in found.hits] == [(at, at // 100) for at in kept]
    assert search.last_lines(read.head(job.pk), 7) == 300


def test_a_late_agent_loses_nothing_to_what_was_taken_over_in_its_place(
    world, settings, tmp_path
) -> None:
    settings.LOCAL_JOBS_FOLDER, settings.HAS_WALL = tmp_path, False
    job, token = make_job(world, phase="SUCCEEDED", submitted_at=clock.now(), ended_at=clock.now())
    run = tmp_path / key_of(job.pk, attempt=1) / "run"
    run.mkdir(parents=True)
    (run / "stderr").write_bytes(b"slipway: the portal is away\n")
    pull.pull(job.pk)
    assert is_log_complete(job.pk)
    keep.keep()
    late = [chunk(ERR, 0, b"a warning\n"), chunk(OUT, 0, b"the result\n")]
    answer = post(token, *late, agent={"host": "n1"}, exit={"code": 7, "signal": None})
    assert answer.status == 200
    assert text(job) == b"slipway: the portal is away\na warning\nthe result\n"
    assert Attempt.objects.get(job=job).exit["code"] == 7
    keep.keep()
    assert read.head(job.pk).is_archived


def test_a_pass_that_has_no_time_left_ends(world, monkeypatch) -> None:
    for _job in range(2):
        _made, token = make_job(world, phase="SUCCEEDED")
        post(token, chunk(OUT, 0, b"line\n"), exit={"code": 0, "signal": None})
    tried = []

    def save(name: str, *_given: object) -> str:
        tried.append(name)
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(default_storage, "save", save)
    with pytest.raises(SoftTimeLimitExceeded):
        keep.keep()
    assert len(tried) == 1


async def _raw(log: read.Head, **asked: str) -> list[bytes]:
    response = rest_logs.raw(log, offset=0, name="", **asked)
    return [piece async for piece in response.streaming_content]


@pytest.mark.django_db(transaction=True)
def test_a_hole_is_downloaded_in_small_pieces_and_ends_where_it_was_asked_to(
    world, settings
) -> None:
    settings.LOG_MAX_BYTES = 1000
    job, token = make_job(world)
    gap = {"stream": OUT, "offset": 500, "at": 1.0, "gap": 9, "reason": "x"}
    post(token, chunk(OUT, 0, b"a" * 500), gap)
    for start in range(5):
        post(token, chunk(OUT, 509 + start * 200_000, b"b" * 200_000))
    keep.drop_middle(LogCursor.objects.get(pk=job.pk))
    log = read.head(job.pk)
    pieces = async_to_sync(_raw)(log, asked="")
    assert sum(map(len, pieces)) == log.size
    assert max(map(len, pieces)) <= rest_logs.RAW_STEP
    assert len(b"".join(async_to_sync(_raw)(log, asked="bytes=0-999"))) == 1000


@pytest.mark.django_db(transaction=True)
def test_a_download_goes_on_when_the_log_is_compacted_under_it(world) -> None:
    job, token = make_job(world)
    data = b"".join(b"%09d\n" % n for n in range(90_000))
    for start in range(0, len(data), 225_000):
        post(token, chunk(OUT, start, data[start : start + 225_000]))
    today = LogCursor.objects.get(pk=job.pk).first_day

    def compact() -> None:
        keep.compact(job.pk)
        partitions.drop(today)
        partitions.prepare()

    async def download() -> bytes:
        log = await sync_to_async(read.head)(job.pk)
        pieces = aiter(rest_logs.raw(log, offset=0, asked="", name="").streaming_content)
        first = await anext(pieces)
        await sync_to_async(compact)()
        return first + b"".join([piece async for piece in pieces])

    assert async_to_sync(download)() == data
