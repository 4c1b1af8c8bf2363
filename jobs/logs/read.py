"""Reading logs by byte offset, from the chunks or from the object that they were compacted to.

The merged log (`all`) and each stream (over all attempts and ranks) have offsets of their own.
Where bytes are not kept any more, a part without data says so and leads over the hole.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.files.storage import default_storage
from django.db import connection

from jobs.logs.frames import Frame, Row, read_index, unpack
from jobs.logs.posts import CHUNK_BYTES, STREAMS
from jobs.logs.text import border

MOST_ROWS: Final = 500
SIZE_CAP, EXPIRED = "size_cap", "expired"
_WORDS = {
    SIZE_CAP: "[slipway: {:,} bytes are not kept here: the log was larger than its limit]\n",
    EXPIRED: "[slipway: {:,} bytes are not kept any more: the log is too old]\n",
}
_HEAD = """
    SELECT position, lines, streams, first_day, archived_at IS NOT NULL, archive, frames
    FROM jobs_logcursor WHERE job_id = %s
"""
_ROWS = """
    SELECT position, line, stream, stream_position, stream_line, attempt, restart, rank,
        extract(epoch FROM at)::float8, gap, data
    FROM (
        SELECT *, sum(size) OVER (ORDER BY {place}) - size AS before
        FROM jobs_logchunk
        WHERE job_id = %(job)s AND day >= %(day)s {where} AND {place} >= coalesce((
            SELECT max({place}) FROM jobs_logchunk
            WHERE job_id = %(job)s AND day >= %(day)s {stream} AND {place} <= %(offset)s), 0)
        ORDER BY {place} LIMIT %(rows)s
    ) AS near
    WHERE before < %(bytes)s ORDER BY {place}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far a log is; offsets and lines of the asked stream."""

    job_id: str
    stream: str
    size: int
    lines: int
    first_day: Any = None
    is_archived: bool = False
    archive: str = ""
    frames: Sequence[Frame] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes of one source in a row, or a hole: then `data` is a sentence for people."""

    offset: int
    next_offset: int
    line: int
    """Newlines before the offset."""
    data: bytes
    stream: str
    rank: int
    attempt: int
    at: float
    gap: str = ""

    @property
    def is_hole(self) -> bool:
        """Tell whether a sentence stands here for bytes that are not kept."""
        return bool(self.gap) and len(self.data) != self.next_offset - self.offset

    def after(self, offset: int) -> "Part":
        """Return what the part has from an offset on; a hole stays a sentence."""
        skipped = offset - self.offset
        if skipped <= 0 or self.is_hole:
            return self
        line = self.line + self.data[:skipped].count(b"\n")
        return replace(self, offset=offset, line=line, data=self.data[skipped:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of a log: its parts, and where to go on."""

    offset: int
    next_offset: int
    size: int
    lines: int
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Which attempt or rank alone is asked for."""

    attempt: int | None = None
    rank: int | None = None

    def takes(self, row: Row) -> bool:
        """Tell whether the row is asked for."""
        return self.attempt in (None, row.attempt) and self.rank in (None, row.rank)

    @property
    def is_all(self) -> bool:
        """Tell whether nothing is left out."""
        return self.attempt is None and self.rank is None


def head(job_id: str, *, stream: str = "all") -> Head:
    """Return how far a job's log is; an empty one when it never began."""
    with connection.cursor() as cursor:
        cursor.execute(_HEAD, [job_id])
        found = cursor.fetchone()
    if found is None:
        return Head(job_id=job_id, stream=stream, size=0, lines=0)
    position, lines, streams, first_day, is_archived, archive, frames = found
    sizes = {"all": (position, lines), **json.loads(streams)}
    size, count = sizes.get(stream, (0, 0))
    return Head(
        job_id=job_id,
        stream=stream,
        size=size,
        lines=count,
        first_day=first_day,
        is_archived=is_archived,
        archive=archive,
        frames=read_index(bytes(frames)) if frames else (),
    )


def read(log: Head, *, offset: int, limit: int, only: Only = Only()) -> Window:
    """Return up to `limit` bytes from an offset on; a negative one counts from the end."""
    begin = max(0, log.size + offset) if offset < 0 else min(offset, log.size)
    read_rows = _archived if log.is_archived else stored
    rows = read_rows(log, begin, limit, only)
    parts: list[Part] = []
    place, budget = begin, limit
    for row in rows:
        start, end = row.place(log.stream), row.place(log.stream) + len(row.data)
        if end <= place or budget <= 0:
            continue
        if start > place and only.is_all:
            parts.append(_hole(log, place, start, line=row.line))
            budget, place = budget - (start - place), start
            if budget <= 0:
                break
        if only.takes(row):
            part = _part(row, log.stream, place, budget)
            parts.append(part)
            budget -= len(part.data)
            place = part.next_offset
            if place < end:
                break
        else:
            place = end
    else:
        if budget > 0 and place < log.size and _is_rest(log, only, rows, parts):
            if only.is_all:
                parts.append(_hole(log, place, log.size, line=log.lines))
            place = log.size
    return Window(offset=begin, next_offset=place, size=log.size, lines=log.lines, parts=parts)


def _is_rest(log: Head, only: Only, rows: Sequence[Row], parts: Sequence[Part]) -> bool:
    """Tell whether nothing of what is asked for is kept behind these rows."""
    if only.is_all:
        return not parts
    return not rows or (not log.is_archived and len(rows) < MOST_ROWS)


def whole(log: Head, *, offset: int = 0, step: int = 1 << 18) -> Iterator[Part]:
    """Yield everything from an offset on, piece by piece, as far as the log was at `head`."""
    while offset < log.size:
        window = read(log, offset=offset, limit=min(step, log.size - offset))
        yield from window.parts
        offset = window.next_offset


def stored(log: Head, offset: int, limit: int, only: Only = Only()) -> list[Row]:
    """Return the chunks of about `limit` bytes, beginning with the one that holds the offset."""
    if log.first_day is None:
        return []
    of_stream = "" if log.stream == "all" else "AND stream = %(stream)s"
    where = of_stream
    if only.attempt is not None:
        where += " AND attempt = %(attempt)s"
    if only.rank is not None:
        where += " AND rank = %(rank)s"
    place = "position" if log.stream == "all" else "stream_position"
    sql = _ROWS.format(place=place, where=where, stream=of_stream)
    given = {
        "job": log.job_id,
        "day": log.first_day,
        "offset": offset,
        "rows": MOST_ROWS,
        "bytes": limit + CHUNK_BYTES,  # the first row may begin before the offset
        "stream": log.stream,
        "attempt": only.attempt,
        "rank": only.rank,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found = cursor.fetchall()
    return [_row(columns) for columns in found]


def _archived(log: Head, offset: int, limit: int, _only: Only) -> list[Row]:
    """Return the rows of the frames from an offset on, of at least `limit` bytes."""
    covering = [f for f in log.frames if log.stream in f.covers]
    wanted = [f for f in covering if f.covers[log.stream][1] > offset]
    rows: list[Row] = []
    if not wanted or not log.archive:
        return rows
    left = limit
    with default_storage.open(log.archive, "rb") as file:
        for frame in wanted:
            if left <= 0:
                break
            begin, end = frame.covers[log.stream]
            left -= end - max(offset, begin)
            file.seek(frame.offset)
            found = unpack(file.read(frame.size))
            rows += [row for row in found if log.stream in ("all", row.stream)]
    return rows


def _row(columns: Sequence[Any]) -> Row:
    position, line, stream, stream_position, stream_line, attempt, restart, rank, at, gap, data = (
        columns
    )
    return Row(
        position=position,
        line=line,
        stream=stream,
        stream_position=stream_position,
        stream_line=stream_line,
        attempt=attempt,
        restart=restart,
        rank=rank,
        at=at,
        gap=gap,
        data=bytes(data),
    )


def _part(row: Row, stream: str, begin: int, most: int) -> Part:
    """Return the row from a place on, no longer than `most`, cut between characters."""
    start = row.place(stream)
    part = Part(
        offset=start,
        next_offset=start + len(row.data),
        line=row.line if stream == "all" else row.stream_line,
        data=row.data,
        stream=row.stream,
        rank=row.rank,
        attempt=row.attempt,
        at=row.at,
        gap=row.gap,
    )
    skipped = max(0, begin - start)
    if skipped:
        line = part.line + row.data[:skipped].count(b"\n")
        part = replace(part, offset=begin, line=line, data=row.data[skipped:])
    if len(part.data) > most:
        data = part.data[: border(part.data, most) or most]
        part = replace(part, next_offset=part.offset + len(data), data=data)
    return part


def _hole(log: Head, begin: int, end: int, *, line: int) -> Part:
    reason = EXPIRED if log.is_archived and not log.archive else SIZE_CAP
    stream = log.stream if log.stream in STREAMS else STREAMS[0]
    return Part(
        offset=begin,
        next_offset=end,
        line=line,
        data=_WORDS[reason].format(end - begin).encode(),
        stream=stream,
        rank=0,
        attempt=0,
        at=0.0,
        gap=reason,
    )
