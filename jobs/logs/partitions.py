"""The table of chunks, `jobs_logchunk`: one partition a day, made ahead and dropped whole.

It is no Django model: rows are written and read by the store alone, never one by one.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.db import connection

from portal.core import clock

AHEAD: Final = 7


def prepare() -> None:
    """Make the partitions of today, of yesterday (clocks differ) and of the coming week."""
    today = clock.now().date()
    with connection.cursor() as cursor:
        for ahead in range(-1, AHEAD + 1):
            day = today + timedelta(days=ahead)
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {_name(day)} PARTITION OF jobs_logchunk"
                f" FOR VALUES FROM ('{day}') TO ('{day + timedelta(days=1)}')"
            )


def days() -> Iterator[date]:
    """Yield the days that have a partition, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits"
            " WHERE inhparent = 'jobs_logchunk'::regclass ORDER BY 1"
        )
        names = [name for (name,) in cursor.fetchall()]
    for name in names:
        yield datetime.strptime(name.rpartition("_")[2], "%Y%m%d").replace(tzinfo=UTC).date()


def is_needed(day: date) -> bool:
    """Tell whether the day has chunks of a log that is not archived."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM {_name(day)} JOIN jobs_logcursor USING (job_id)"  # noqa: S608 - a date
            " WHERE archived_at IS NULL)"
        )
        found: bool = cursor.fetchone()[0]
    return found


def drop(day: date) -> None:
    """Drop a day's partition with all that is in it."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {_name(day)}")


def _name(day: date) -> str:
    return f"jobs_logchunk_{day:%Y%m%d}"
