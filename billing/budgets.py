"""Periods of budgets, their verdicts, and what would fit (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Final
from zoneinfo import ZoneInfo

from billing.values import HOUR_US, PeriodKind

LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)
FIRST: Final = datetime(2000, 1, 1, tzinfo=UTC)
CENT: Final = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One period of a budget: from an instant until, not including, another; in UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A budget period's money at an instant. The three never overlap and nothing falls between."""

    amount: Decimal
    settled: Decimal
    """Charges."""
    committed: Decimal
    """Held and not settled: what running and reserved leases may still come to."""
    currency: str
    hard: bool

    @property
    def available(self) -> Decimal:
        """What new holds may still take; below zero when the amount was cut later."""
        return self.amount - self.settled - self.committed


def period_of(kind: PeriodKind, instant: datetime, *, zone: ZoneInfo) -> Period:
    """Return the period that contains the instant; months and quarters begin at local midnight."""
    if kind is PeriodKind.TOTAL:
        return Period(start=FIRST, end=LAST)
    local = instant.astimezone(zone)
    months = 1 if kind is PeriodKind.MONTH else 3
    first = (local.month - 1) // months * months + 1
    year, after = local.year, first + months
    return Period(
        start=_midnight(year, first, zone),
        end=_midnight(year + (after - 1) // 12, (after - 1) % 12 + 1, zone),
    )


def _midnight(year: int, month: int, zone: ZoneInfo) -> datetime:
    """Return the first instant of a month there; a midnight that does not exist is moved on."""
    return datetime(year, month, 1, tzinfo=zone).astimezone(UTC)


def periods_of(
    kind: PeriodKind, begin: datetime, end: datetime, *, zone: ZoneInfo
) -> Sequence[Period]:
    """Return the periods that a span of time touches, in order; of an empty span, its own."""
    found = [period_of(kind, begin, zone=zone)]
    while found[-1].end < end:
        found.append(period_of(kind, found[-1].end, zone=zone))
    return found


def shortage(standing: Standing, wanted: Decimal) -> Decimal:
    """Return how much is missing for another hold; 0 when it fits, or the budget is soft."""
    if not standing.hard:
        return Decimal(0)
    return max(Decimal(0), wanted - standing.available)


def reached(standing: Standing, thresholds: Sequence[Decimal]) -> Decimal | None:
    """Return the highest threshold that settled and committed money has come to."""
    if standing.amount <= 0:
        return max(thresholds, default=None)
    share = (standing.settled + standing.committed) / standing.amount
    return max((one for one in thresholds if share >= one), default=None)


def runs_out_at(
    standing: Standing, accrued: Decimal, period: Period, *, since: datetime, now: datetime
) -> datetime | None:
    """Return when the money is gone if it goes on as since then; `None`: not in this period."""
    spent = standing.settled + accrued
    passed = now - max(since, period.start)
    if spent <= 0 or passed <= timedelta(0):
        return None
    left = standing.amount - spent
    if left <= 0:
        return now
    try:
        gone = now + passed * float(left / spent)
    except OverflowError:
        return None
    return gone if gone < period.end else None


def what_fits(
    standing: Standing, per_hour: Decimal, *, wanted_us: int, unit: str, count: int
) -> str:
    """Say what would fit at this rate, and what is missing for what was asked.

    `count` of `unit` (such as 8 GPUs) is what the rate is for.
    """
    wanted = per_hour * wanted_us / HOUR_US
    missing = shortage(standing, wanted).quantize(CENT, rounding=ROUND_CEILING)
    asked = f"{count} {unit} for {hours(wanted_us)} needs {missing:,f} {standing.currency} more"
    if per_hour <= 0 or standing.available <= 0:
        return f"{asked}."
    fitting_us = int(standing.available * HOUR_US / per_hour)
    if fitting_us >= HOUR_US // 60:
        return f"{count} {unit} for {hours(fitting_us, down=True)} fits; {asked}."
    return f"{asked}."


def hours(span_us: int, *, down: bool = False) -> str:
    """Write a span in hours and minutes; rounded up to a minute, or down."""
    minute = HOUR_US // 60
    minutes = span_us // minute if down else -(-span_us // minute)
    whole, rest = divmod(minutes, 60)
    if not whole:
        return f"{rest} min"
    return f"{whole:,} h {rest} min" if rest else f"{whole:,} h"
