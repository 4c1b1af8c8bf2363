"""Appending to logs: many posts in one transaction, each job's cursor locked while it grows.

A chunk's identity is (job, attempt, restart, rank, stream, source offset): what is there already
is cut off, and what would leave a hole is not taken, so a post may come twice, late or in pieces.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from clusters.samples import store as samples
from clusters.samples import tables
from clusters.samples.store import Sample
from jobs import wakeups
from jobs.logs import partitions
from jobs.logs.posts import CHUNK_BYTES, STREAMS, Chunk, Post
from jobs.logs.text import cut
from jobs.models import Attempt, Checkpoint, Job
from jobs.values import subject_of
from portal.core import push

GOOD, UNFIT, ENDED, OVER = 200, 400, 401, 410
RESTARTS_AHEAD: Final = 8
NO_AGENT: Final = "the node agent did not speak"
"""Says of an exit that the portal wrote it, in place of an agent that may still come."""
_LOCK = """
    SELECT a.token_hash, a.id, a.number, a.agent IS NULL,
        c.archived_at IS NOT NULL OR coalesce(
            CASE WHEN a.number < j.attempt THEN j.queued_at ELSE j.ended_at END
            < now() - interval '1 hour', false),
        c.job_id, c.position, c.lines, c.streams, c.sources,
        coalesce(c.followed_until > now(), false), j.nodes, j.restart
    FROM jobs_attempt a
    JOIN jobs_logcursor c ON c.job_id = a.job_id
    JOIN jobs_job j ON j.id = a.job_id
    WHERE a.token_hash = ANY(%s)
    ORDER BY c.job_id
    FOR NO KEY UPDATE OF c
"""
_INSERT = """
    INSERT INTO jobs_logchunk (day, job_id, position, size, line, stream, stream_position,
        stream_line, attempt, restart, rank, at, gap, data)
    VALUES (current_date, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_UPDATE = """
    UPDATE jobs_logcursor SET position = %s, lines = %s, streams = %s, sources = %s,
        first_day = coalesce(first_day, current_date)
    WHERE job_id = %s
"""


@dataclass(slots=True, kw_only=True)
class Log:
    """A job's log while its cursor is locked, and the rows that it has grown by."""

    job_id: str
    position: int
    lines: int
    streams: dict[str, list[int]]
    """stream → its bytes and its newlines, over all attempts and ranks."""
    sources: dict[str, int]
    is_followed: bool
    rows: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a token may do now: write the log as one attempt, unless that is over for too long."""

    attempt_id: str
    attempt: int
    is_new: bool
    is_over: bool
    ranks: int
    restarts: int
    """The last restart that may write: an agent may know of some before the observer does."""
    log: Log

    def takes(self, post: Post) -> bool:
        """Tell whether the post is of a rank and a restart that the job can have."""
        return post.rank < self.ranks and post.restart <= self.restarts


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a post comes to: 200, 400 (cannot be stored), 401 (no such token), 410 (long over)."""

    status: int
    acked: dict[str, int] = field(default_factory=dict)
    is_followed: bool = False


def take(posts: Sequence[Post]) -> list[Answer]:
    """Append what the posts bring, all in one transaction; return their answers in order."""
    try:
        return _take(posts)
    except IntegrityError:  # a day without a partition: beat has not run for a week
        partitions.prepare()
        tables.prepare()
        return _take(posts)


@transaction.atomic
def _take(posts: Sequence[Post]) -> list[Answer]:
    grants = lock_log({post.token_hash for post in posts})
    answers = [_answer(post, grants.get(post.token_hash)) for post in posts]
    grown = {g.log.job_id: g.log for g in grants.values() if g.log.rows}.values()
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, [row for log in grown for row in log.rows])
        cursor.executemany(_UPDATE, [_columns(log) for log in grown])
    for post, answer in zip(posts, answers, strict=True):
        if answer.status == GOOD:
            _report(post, grants[post.token_hash])
    for log in grown:
        if log.is_followed:
            push.hint(f"log.{log.job_id}", job=log.job_id, upto=log.position)
    _sample(posts, grants)
    return answers


def lock_log(token_hashes: Iterable[str]) -> dict[str, Grant]:
    """Lock the cursors of the logs that these tokens may write; token's hash → grant.

    Taken alone, never beside another row lock, and always in the order of jobs.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [list(token_hashes)])
        found = cursor.fetchall()
    logs: dict[str, Log] = {}
    grants = {}
    for token_hash, attempt_id, attempt, is_new, is_over, job_id, *rest in found:
        position, lines, streams, sources, is_followed, nodes, restart = rest
        log = logs.setdefault(
            job_id,
            Log(
                job_id=job_id,
                position=position,
                lines=lines,
                streams=json.loads(streams),
                sources=json.loads(sources),
                is_followed=is_followed,
            ),
        )
        grants[token_hash] = Grant(
            attempt_id=attempt_id,
            attempt=attempt,
            is_new=is_new,
            is_over=is_over,
            ranks=nodes,
            restarts=restart + RESTARTS_AHEAD,
            log=log,
        )
    return grants


def _answer(post: Post, grant: Grant | None) -> Answer:
    if grant is None:
        return Answer(status=ENDED)
    if grant.is_over:
        return Answer(status=OVER)
    if not grant.takes(post):
        return Answer(status=UNFIT)
    for chunk in _joined(post.chunks):
        _append(grant, post, chunk)
    sources = grant.log.sources
    acked = {stream: sources.get(_source(grant, post, stream), 0) for stream in STREAMS}
    return Answer(status=GOOD, acked=acked, is_followed=grant.log.is_followed)


def _joined(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Join neighbours of one stream, so that a post of many lines is a few rows."""
    last: Chunk | None = None
    for chunk in chunks:
        if last is not None and _continues(last, chunk):
            data = last.data + chunk.data
            last = Chunk(stream=last.stream, offset=last.offset, at=last.at, data=data)
            continue
        if last is not None:
            yield last
        last = chunk
    if last is not None:
        yield last


def _continues(last: Chunk, chunk: Chunk) -> bool:
    return (
        not (last.dropped or chunk.dropped)
        and last.stream == chunk.stream
        and last.offset + len(last.data) == chunk.offset
        and len(last.data) + len(chunk.data) <= CHUNK_BYTES
    )


def _append(grant: Grant, post: Post, chunk: Chunk) -> None:
    """Add what is new of a chunk; nothing when it would leave a hole."""
    source = _source(grant, post, chunk.stream)
    known = grant.log.sources.get(source, 0)
    known_of_chunk = known - chunk.offset
    if known_of_chunk < 0 or known_of_chunk >= chunk.size:
        return
    grant.log.sources[source] = chunk.offset + chunk.size
    if chunk.dropped:
        dropped = chunk.size - known_of_chunk
        text = f"[slipway: {dropped:,} bytes of {chunk.stream} are missing here: {chunk.reason}]\n"
        _add(grant, post, chunk, text.encode())
        return
    for data in cut(chunk.data[known_of_chunk:], most=CHUNK_BYTES):
        _add(grant, post, chunk, data)


def _add(grant: Grant, post: Post, chunk: Chunk, data: bytes) -> None:
    log = grant.log
    stream = log.streams.setdefault(chunk.stream, [0, 0])
    place = (log.job_id, log.position, len(data), log.lines, chunk.stream, *stream)
    origin = (grant.attempt, post.restart, post.rank, _instant(chunk.at), chunk.reason)
    log.rows.append((*place, *origin, data))
    lines = data.count(b"\n")
    log.position, log.lines = log.position + len(data), log.lines + lines
    log.streams[chunk.stream] = [stream[0] + len(data), stream[1] + lines]


def _source(grant: Grant, post: Post, stream: str) -> str:
    return f"{grant.attempt}.{post.restart}.{post.rank}.{stream}"


def _columns(log: Log) -> tuple[Any, ...]:
    streams, sources = json.dumps(log.streams), json.dumps(log.sources)
    return log.position, log.lines, streams, sources, log.job_id


def _report(post: Post, grant: Grant) -> None:
    """Write what the agent says about itself, its checkpoints and the end; the first word stays."""
    if grant.is_new and post.agent:
        Attempt.objects.filter(pk=grant.attempt_id, agent__isnull=True).update(
            agent=dict(post.agent)
        )
    if post.exit is not None:
        unsaid = Q(exit__isnull=True) | Q(exit__error=NO_AGENT)
        Attempt.objects.filter(unsaid, pk=grant.attempt_id).update(exit=dict(post.exit))
        push.hint(f"log.{grant.log.job_id}", job=grant.log.job_id)
        wakeups.observe(Job.objects.values_list("cluster_id", flat=True).get(pk=grant.log.job_id))
    Checkpoint.objects.bulk_create(
        [
            Checkpoint(
                job_id=grant.log.job_id,
                attempt=grant.attempt,
                rank=post.rank,
                folder=found.folder,
                name=found.name,
                at=_instant(found.at),
                seconds=found.seconds,
                bytes=found.bytes,
            )
            for found in post.checkpoints
        ],
        ignore_conflicts=True,
    )


def _sample(posts: Sequence[Post], grants: Mapping[str, Grant]) -> None:
    """Hand over the figures of the posts that were good."""
    brought = [
        (post, grant.log)
        for post in posts
        if post.samples
        and (grant := grants.get(post.token_hash))
        and not grant.is_over
        and grant.takes(post)
    ]
    samples.take(
        [
            Sample(subject=subject_of(log.job_id, post.rank), at=found.at, series=found.series)
            for post, log in brought
            for found in post.samples
        ]
    )
    for log in {log.job_id: log for _post, log in brought}.values():
        if log.is_followed:
            push.hint(f"sample.{log.job_id}", job=log.job_id)


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
