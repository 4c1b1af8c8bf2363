"""When deliveries are tried."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.notices.timing import DELAYS, delay_after, quiet_ends_at
from portal.notices.values import LevelName, concerns

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (time(22), time(7))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "hours", "ends"),
    [
        ("2026-01-10T12:00", NIGHT, None),
        ("2026-01-10T20:59", NIGHT, None),
        ("2026-01-10T21:00", NIGHT, "2026-01-11T06:00"),  # 22:00 in winter
        ("2026-01-10T23:30", NIGHT, "2026-01-11T06:00"),  # after midnight
        ("2026-01-11T05:59", NIGHT, "2026-01-11T06:00"),
        ("2026-01-11T06:00", NIGHT, None),
        ("2026-07-10T20:00", NIGHT, "2026-07-11T05:00"),  # 22:00 in summer
        ("2026-12-31T22:30", NIGHT, "2027-01-01T06:00"),
        ("2026-03-28T21:30", NIGHT, "2026-03-29T05:00"),  # the night that lacks an hour
        ("2026-10-24T20:30", NIGHT, "2026-10-25T06:00"),  # the night that has one more
        ("2026-01-10T10:59", (time(12), time(14)), None),
        ("2026-01-10T13:00", (time(12), time(14)), None),
        ("2026-01-10T11:00", (time(12), time(14)), "2026-01-10T13:00"),
        ("2026-03-29T00:45", (time(1), time(2, 30)), "2026-03-29T01:30"),  # 2:30 does not exist
        ("2026-10-25T00:10", (time(1), time(2, 30)), "2026-10-25T01:30"),  # 2:30 comes twice
        ("2026-10-25T01:15", (time(1), time(2, 30)), "2026-10-25T01:30"),
    ],
)
def test_quiet_hours_are_those_of_the_wall_clock(now, hours, ends):
    got = quiet_ends_at(utc(now), zone=BERLIN, start=hours[0], end=hours[1])
    assert got == (utc(ends) if ends else None)


@given(
    st.integers(1_600_000_000, 2_100_000_000),
    st.times(),
    st.times(),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
)
def test_quiet_hours_always_end_later_and_within_a_day(seconds, start, end, zone):
    now = datetime.fromtimestamp(seconds, UTC)
    if start == end:
        return
    ends = quiet_ends_at(now, zone=ZoneInfo(zone), start=start, end=end)
    if ends is not None:
        assert now < ends <= now + timedelta(hours=25)


def test_attempts_are_spread_over_a_day_and_then_given_up():
    longest = sum((delay_after(n, jitter=0) for n in range(1, len(DELAYS) + 1)), timedelta())
    assert timedelta(hours=22) < longest < timedelta(hours=27)
    assert delay_after(1, jitter=0) == timedelta(seconds=10)
    assert delay_after(len(DELAYS), jitter=0) == timedelta(hours=6)
    assert delay_after(len(DELAYS) + 1, jitter=0) is None


@pytest.mark.parametrize(("asked", "got"), [(0, 8), (5, 8), (120, 120), (10**9, 24 * 3600)])
def test_a_receiver_that_asks_for_time_gets_it_up_to_a_day(asked, got):
    delay = delay_after(1, jitter=1, retry_after_seconds=asked)
    assert delay == timedelta(seconds=got)


@pytest.mark.parametrize(
    ("minimum", "previous", "level", "expected"),
    [
        ("warn", "ok", "info", False),
        ("warn", "ok", "warn", True),
        ("warn", "warn", "bad", True),
        ("warn", "bad", "ok", True),  # that it is over is news for whoever heard of it
        ("warn", "info", "ok", False),
        ("bad", "warn", "ok", False),
        ("ok", "ok", "info", True),
    ],
)
def test_a_route_hears_of_what_it_asked_for(minimum, previous, level, expected):
    heard = concerns(LevelName(minimum), previous=LevelName(previous), level=LevelName(level))
    assert heard is expected
