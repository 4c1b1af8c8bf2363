"""When a delivery is tried: back-off, and quiet hours in the team's zone. Pure."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

MINUTE: Final = 60
HOUR: Final = 3600
DELAYS: Final = (10, MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, *[6 * HOUR] * 3)
"""Seconds after the first, second … failed attempt; about 24 h in all."""
LONGEST: Final = timedelta(days=1)


def delay_after(
    attempts: int, *, jitter: float, retry_after_seconds: float = 0
) -> timedelta | None:
    """Return how long to wait after that many failed attempts, or `None` to give up.

    `jitter` from 0 to 1 takes up to a fifth off; a receiver that asks for more time gets it, up to
    a day.
    """
    if attempts > len(DELAYS):
        return None
    planned = timedelta(seconds=DELAYS[max(attempts, 1) - 1] * (1 - jitter / 5))
    return min(max(planned, timedelta(seconds=retry_after_seconds)), LONGEST)


def quiet_ends_at(now: datetime, *, zone: ZoneInfo, start: time, end: time) -> datetime | None:
    """Return when the quiet hours around `now` end, or `None` outside of them.

    `start` and `end` are wall-clock times of the zone; `start` after `end` spans midnight. An end
    that a clock change skips comes after the change; of one that comes twice, the second counts.
    """
    local = now.astimezone(zone)
    clock = local.time()
    spans_midnight = start > end
    inside = clock >= start or clock < end if spans_midnight else start <= clock < end
    if not inside:
        return None
    day = local.date() + timedelta(days=1 if spans_midnight and clock >= start else 0)
    return max(
        datetime.combine(day, end.replace(fold=fold), tzinfo=zone).astimezone(UTC)
        for fold in (0, 1)
    )
