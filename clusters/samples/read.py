"""Reading samples: by buckets of any length from the table that has them, or one by one."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connection

from clusters.samples.cells import Cell, Series, add, floor, unpack
from clusters.samples.store import Sample
from clusters.samples.tables import DAY, MINUTES, QUARTERS, RAW_SECONDS, Level
from portal.core import clock

MOST_SAMPLES: Final = 20_000
_RAW = """
    SELECT subject, extract(epoch FROM at)::float8, series FROM clusters_sample
    WHERE subject >= %s AND subject < %s AND at >= to_timestamp(%s) AND at < to_timestamp(%s)
"""
_AFTER = """
    SELECT subject, extract(epoch FROM at)::float8, series FROM (
        SELECT s.subject, s.at, s.series FROM clusters_sample s
        JOIN unnest(%s::text[], %s::float8[]) AS known (subject, at)
            ON s.subject = known.subject AND s.at > to_timestamp(known.at)
        UNION ALL
        SELECT subject, at, series FROM clusters_sample
        WHERE subject >= %s AND subject < %s AND at > to_timestamp(%s) AND subject <> ALL(%s)
    ) AS fresh ORDER BY at, subject LIMIT %s
"""
_NEWEST = """
    SELECT DISTINCT ON (subject) subject, extract(epoch FROM at)::float8, series
    FROM clusters_sample WHERE subject >= %s AND subject < %s ORDER BY subject, at DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a span is read from (`None`: the samples themselves), and the true step."""

    level: Level | None
    step: int


def source_of(*, begin: float, step: int) -> Source:
    """Return what can give buckets of the wished step from an instant on.

    Buckets get longer where only rollups are left.
    """
    now = clock.now().timestamp()
    if step < MINUTES.step and begin >= now - RAW_SECONDS:
        return Source(level=None, step=step)
    level = MINUTES if begin >= now - settings.SAMPLE_DAYS[0] * DAY else QUARTERS
    return Source(level=level, step=-(-step // level.step) * level.step)


def buckets(prefix: str, *, begin: float, end: float, source: Source) -> dict[str, Series]:
    """Return subject → its series, of all subjects that begin with the prefix.

    What has come since the last rollup is read from the samples.
    """
    found: dict[str, Series] = {}
    raw_from = begin
    if source.level is not None:
        raw_from = max(begin, floor(_rolled_until() - 60, source.level.step))
        for subject, name, at, cell in _rolled(prefix, begin, min(end, raw_from), source.level):
            add(found.setdefault(subject, {}), name, floor(at, source.step), cell)
    with connection.cursor() as cursor:
        cursor.execute(_RAW, [*_range(prefix), raw_from, end])
        for subject, at, text in cursor.fetchall():
            series, start = found.setdefault(subject, {}), floor(at, source.step)
            for name, value in json.loads(text).items():
                add(series, name, start, (1, value, value))
    return found


def after(prefix: str, at: float, *, known: Mapping[str, float] | None = None) -> list[Sample]:
    """Return the samples that are newer than an instant, oldest first, up to a bound.

    `known` has the instant of a subject where it is another one.
    """
    known = known or {}
    names = list(known)
    return _samples(_AFTER, [names, list(known.values()), *_range(prefix), at, names, MOST_SAMPLES])


def newest(prefix: str) -> list[Sample]:
    """Return the newest sample of each subject."""
    return _samples(_NEWEST, [*_range(prefix)])


def _samples(query: str, values: list[Any]) -> list[Sample]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        rows = cursor.fetchall()
    return [Sample(subject=subject, at=at, series=json.loads(text)) for subject, at, text in rows]


def _rolled_until() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM until)::float8 FROM clusters_sample_rolled")
        until: float = cursor.fetchone()[0]
    return until


def _rolled(
    prefix: str, begin: float, end: float, level: Level
) -> Iterator[tuple[str, str, int, Cell]]:
    """Yield subject, name, start and cell of each bucket that lies in the span."""
    first = floor(begin, level.step)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT subject, extract(epoch FROM at)::bigint, data FROM {level.name}"  # noqa: S608 - a constant
            " WHERE subject >= %s AND subject < %s"
            " AND at >= to_timestamp(%s) AND at < to_timestamp(%s)",
            [*_range(prefix), floor(begin, level.span), end],
        )
        rows = cursor.fetchall()
    for subject, start, data in rows:
        for name, at, cell in unpack(data, start=start, step=level.step):
            if first <= at < end:
                yield subject, name, at, cell


def _range(prefix: str) -> tuple[str, str]:
    """Return the bounds between which all subjects with the prefix lie, in byte order."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)
