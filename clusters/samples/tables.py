"""The tables of samples and their partitions, made ahead and dropped whole.

They are no Django models: samples come by the hundred a second, and no row is deleted by itself.
`clusters_sample` keeps each sample for some hours. Rollups keep count, sum and largest of each
bucket, in packed rows: buckets of a minute by the hour, of 15 minutes by the day.
"""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import connection

from portal.core import clock

HOUR: Final = 3600
DAY: Final = 24 * HOUR
RAW_SECONDS: Final = 2 * HOUR
"""How far back each sample can be read for sure."""
OLDEST_SECONDS: Final = 65 * 60
"""Samples that come later than this are not taken; agents keep fewer."""
AHEAD_SECONDS: Final = 10 * 60
"""How far ahead a node's clock may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with one partition for every so many seconds since 1970, and how many are ahead."""

    name: str
    every: int
    ahead: int
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Table):
    """A rollup: seconds of a bucket, and of a row."""

    step: int
    span: int


RAW: Final = Table(name="clusters_sample", every=HOUR, ahead=2, behind=2)
MINUTES: Final = Level(
    name="clusters_sample_minutes", every=DAY, ahead=1, behind=1, step=60, span=HOUR
)
QUARTERS: Final = Level(
    name="clusters_sample_quarters", every=30 * DAY, ahead=1, behind=1, step=15 * 60, span=DAY
)
TABLES: Final = (RAW, MINUTES, QUARTERS)


def prepare() -> None:
    """Make the partitions of now, of a little before and of the near future."""
    now = int(clock.now().timestamp())
    with connection.cursor() as cursor:
        for table in TABLES:
            known, number = set(partitions(table)), now // table.every
            for wanted in range(number - table.behind, number + table.ahead + 1):
                if wanted not in known:
                    begin, end = wanted * table.every, (wanted + 1) * table.every
                    cursor.execute(
                        f"CREATE TABLE IF NOT EXISTS {table.name}_{wanted}"
                        f" PARTITION OF {table.name}"
                        f" FOR VALUES FROM (to_timestamp({begin})) TO (to_timestamp({end}))"
                    )


def partitions(table: Table) -> list[int]:
    """Return the numbers of the table's partitions: seconds since 1970, divided by its span."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass",
            [table.name],
        )
        return sorted(int(name.rpartition("_")[2]) for (name,) in cursor.fetchall())


def drop_old(*, rolled_until: float) -> None:
    """Drop the partitions that are older than samples are kept, and raw ones once rolled up."""
    now = clock.now().timestamp()
    minutes, quarters = settings.SAMPLE_DAYS
    kept_from = {
        RAW: min(now - RAW_SECONDS - HOUR, rolled_until - 2 * HOUR),
        MINUTES: now - minutes * DAY,
        QUARTERS: now - quarters * DAY,
    }
    with connection.cursor() as cursor:
        for table, oldest in kept_from.items():
            for number in partitions(table):
                if (number + 1) * table.every <= oldest:
                    cursor.execute(f"DROP TABLE IF EXISTS {table.name}_{number}")
