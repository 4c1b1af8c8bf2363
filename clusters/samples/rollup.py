"""Rolling samples up: each minute, the buckets that have got samples are computed anew.

A bucket is a function of the samples in it, so order, repetition and a crash change nothing.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection, transaction

from clusters.samples import tables
from clusters.samples.cells import Series, add, floor, group_of, pack, unpack
from clusters.samples.tables import MINUTES, QUARTERS, Level

LOCK: Final = 0x536C6970  # of PostgreSQL's advisory locks: one pass at a time
BATCH: Final = 200
_TOUCHED = """
    SELECT subject, extract(epoch FROM date_trunc('minute', min(at)))::bigint
    FROM clusters_sample WHERE received >= %s::timestamptz - interval '2 minutes'
    GROUP BY subject
"""
_RAW = """
    SELECT subject, extract(epoch FROM at)::float8, series FROM clusters_sample
    WHERE subject = ANY(%s) AND at >= to_timestamp(%s)
"""

Key = tuple[str, str, int]
"""Subject, group and start of a packed row."""


def roll_up() -> None:
    """Roll up what has come since the last pass, and drop what need not be kept any more."""
    tables.prepare()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return
        cursor.execute("SELECT until, now() FROM clusters_sample_rolled")
        until, now = cursor.fetchone()
        cursor.execute(_TOUCHED, [until])
        touched = cursor.fetchall()
        for begin in range(0, len(touched), BATCH):
            _roll(cursor, dict(touched[begin : begin + BATCH]))
        cursor.execute("UPDATE clusters_sample_rolled SET until = %s", [now])
    tables.drop_old(rolled_until=now.timestamp())


def _roll(cursor: Any, since: Mapping[str, int]) -> None:
    """Compute anew the buckets of each subject from an instant on, the beginning of a minute."""
    cursor.execute(_RAW, [list(since), min(since.values())])
    minutes: dict[Key, Series] = {}
    for subject, at, text in cursor.fetchall():
        if at < since[subject]:
            continue
        start = floor(at, MINUTES.step)
        for name, value in json.loads(text).items():
            key = subject, group_of(name), floor(start, MINUTES.span)
            add(minutes.setdefault(key, {}), name, start, (1, value, value))
    _write(cursor, MINUTES, minutes, since=since)
    since = {subject: floor(at, QUARTERS.step) for subject, at in since.items()}
    quarters: dict[Key, Series] = {}
    for (subject, group, start), series in minutes.items():
        into = quarters.setdefault((subject, group, floor(start, QUARTERS.span)), {})
        for name, cells in series.items():
            for at, cell in cells.items():
                if at >= since[subject]:
                    add(into, name, floor(at, QUARTERS.step), cell)
    _write(cursor, QUARTERS, quarters, since=since)


def _write(cursor: Any, level: Level, rows: dict[Key, Series], *, since: Mapping[str, int]) -> None:
    """Write rows, after adding to each what is stored of it from before `since`."""
    subjects = list({subject for subject, _group, _start in rows})
    starts = [_instant(start) for start in {start for _subject, _group, start in rows}]
    cursor.execute(
        f"SELECT subject, part, extract(epoch FROM at)::bigint, data FROM {level.name}"  # noqa: S608 - a constant
        " WHERE subject = ANY(%s) AND at = ANY(%s)",
        [subjects, starts],
    )
    for subject, group, start, data in cursor.fetchall():
        series = rows.setdefault((subject, group, start), {})
        for name, at, cell in unpack(data, start=start, step=level.step):
            if at < since[subject]:
                add(series, name, at, cell)
    cursor.executemany(
        f"INSERT INTO {level.name} (subject, part, at, data) VALUES (%s, %s, %s, %s)"  # noqa: S608 - a constant
        " ON CONFLICT (subject, part, at) DO UPDATE SET data = excluded.data",
        [
            (subject, group, _instant(start), pack(series, start=start, step=level.step))
            for (subject, group, start), series in sorted(rows.items(), key=lambda row: row[0])
            if series
        ],
    )


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
