"""The ledger: leases are reserved, opened, settled, renewed, put back and closed.

Every function takes the team's lock first (`lock_quota`), then the budget periods that it touches,
in the order of (budget, start), and writes all or nothing. States of money never overlap: what is
settled is charges; what is committed is each part's amount beyond what is settled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import F

from billing import budgets as rules
from billing.budgets import Period, Standing
from billing.models import Budget, BudgetPeriod, Charge, Lease, Part
from billing.pricing import amount_of
from billing.values import HOUR_US, LeaseState, PeriodKind, Rate, Span, micros
from portal.core.errors import Refused
from portal.teams.models import Team
from portal.teams.services.limits import lock_quota

Spans = dict[int, Span]
"""Budget period's id → the stretch of a lease that is committed to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A hold that is asked for: whose, at what rate, for how long at most."""

    subject: str
    team: Team
    rate: Rate
    limit: timedelta
    facts: Mapping[str, Any]
    unit: str = "GPUs"
    count: int = 1
    """What the rate is for, for people: 8 GPUs."""


@transaction.atomic
def reserve(wanted: Wanted, *, now: datetime) -> Lease:
    """Hold the whole of what a lease may come to, in the period that contains now.

    Raises `Refused`: `waiting_for_budget` with what would fit, `exceeds_budget` when the hold is
    larger than a whole hard budget, `other_currency`.
    """
    team = wanted.team
    lock_quota(team)
    span = Span(begin_us=0, end_us=micros(wanted.limit))
    hold = amount_of(wanted.rate.per_hour, span)
    periods = [_period(budget, now) for budget in _budgets(team)]
    for period in periods:
        _check(period, wanted, hold, span.end_us)
    lease = Lease.objects.create(
        subject=wanted.subject,
        team=team,
        state=LeaseState.RESERVED,
        per_hour=wanted.rate.per_hour,
        currency=wanted.rate.currency,
        limit_us=span.end_us,
        reserved_at=now,
        facts=dict(wanted.facts),
    )
    _commit(lease, {period.pk: span for period in periods})
    return lease


@transaction.atomic
def open_lease(lease_id: str, *, started_at: datetime) -> Lease:
    """Let the clock run from the scheduler's own start; the hold is split by time.

    Money is then held until the limit, or until the edge of the first period that cannot take its
    part. Opening an open lease changes nothing.
    """
    lease = _lock(lease_id)
    if lease.state != LeaseState.RESERVED:
        return lease
    lease.state, lease.opened_at = LeaseState.OPEN, started_at
    lease.run_us = lease.settled_us
    _hold(lease, since=started_at)
    return lease


@transaction.atomic
def renew(lease_id: str, *, now: datetime) -> bool:
    """Try to hold the rest of an open lease's limit; tell whether money is held for longer now."""
    lease = _lock(lease_id)
    if lease.state != LeaseState.OPEN or lease.held_until is None:
        return False
    before = lease.held_until
    _settle(lease, min(now, before))
    _hold(lease, since=before)
    return lease.held_until > before


@transaction.atomic
def settle(lease_id: str, *, until: datetime) -> Decimal:
    """Charge an open lease up to an instant, at most to where money is held; return the amount."""
    lease = _lock(lease_id)
    return _settle(lease, until) if lease.state == LeaseState.OPEN else Decimal(0)


@transaction.atomic
def put_back(lease_id: str, *, at: datetime) -> Lease:
    """Settle a lease whose subject was requeued; what remains is reserved once more."""
    lease = _lock(lease_id)
    if lease.state != LeaseState.OPEN:
        return lease
    _settle(lease, at)
    rest = Span(begin_us=lease.settled_us, end_us=lease.limit_us)
    lease.state, lease.opened_at, lease.held_until = LeaseState.RESERVED, None, None
    lease.run_us = lease.settled_us
    _commit(lease, {_period(budget, at).pk: rest for budget in _budgets(lease.team)})
    lease.save(update_fields=["state", "opened_at", "held_until", "run_us"])
    return lease


@transaction.atomic
def close(lease_id: str, *, ended_at: datetime) -> Lease:
    """Settle to the end, at most to where money was held, and free the rest. Twice is once."""
    lease = _lock(lease_id)
    if lease.state == LeaseState.CLOSED:
        return lease
    if lease.state == LeaseState.OPEN and lease.held_until is not None:
        _settle(lease, ended_at)
        lease.unbilled_us = max(0, micros(ended_at - lease.held_until))
    lease.state, lease.closed_at = LeaseState.CLOSED, ended_at
    _commit(lease, {})
    lease.save(update_fields=["state", "closed_at", "unbilled_us"])
    return lease


@transaction.atomic
def move_reserved(lease_id: str, *, now: datetime) -> bool:
    """Move the hold of a lease that has not started into the period that contains now.

    Returns whether it fits there; if not it is left where it was, and its subject must go back
    into line.
    """
    lease = _lock(lease_id)
    if lease.state != LeaseState.RESERVED:
        return True
    span = Span(begin_us=lease.settled_us, end_us=lease.limit_us)
    hold = amount_of(lease.per_hour, span)
    held = set(lease.parts.values_list("period_id", flat=True))
    periods = [_period(budget, now) for budget in _budgets(lease.team)]
    for period in periods:
        if hold and period.pk not in held and rules.shortage(standing_of(period), hold):
            return False
    _commit(lease, {period.pk: span for period in periods})
    return True


def standing_of(period: BudgetPeriod) -> Standing:
    """Return a budget period's money as the rules read it."""
    budget = period.budget
    return Standing(
        amount=budget.amount,
        settled=period.settled,
        committed=period.committed,
        currency=budget.currency,
        hard=budget.hard,
    )


def lock_periods(budget: Budget, periods: Iterable[Period]) -> list[BudgetPeriod]:
    """Lock these periods of a budget, in order; made if they are not there. After `lock_quota`."""
    rows = []
    for period in periods:
        row, _made = BudgetPeriod.objects.get_or_create(
            budget=budget, start=period.start, defaults={"end": period.end}
        )
        rows.append(
            BudgetPeriod.objects.select_for_update(no_key=True, of=("self",))
            .select_related("budget")
            .get(pk=row.pk)
        )
    return rows


def _lock(lease_id: str) -> Lease:
    """Return the lease with its team's lock held: nobody else touches the team's ledger now."""
    team = Lease.objects.select_related("team").get(pk=lease_id).team
    lock_quota(team)
    return Lease.objects.select_related("team").get(pk=lease_id)


def _budgets(team: Team) -> Sequence[Budget]:
    return list(Budget.objects.filter(team=team, ended_at=None).order_by("pk"))


def _period(budget: Budget, instant: datetime) -> BudgetPeriod:
    zone = ZoneInfo(budget.team.time_zone)
    period = rules.period_of(PeriodKind(budget.period), instant, zone=zone)
    return lock_periods(budget, [period])[0]


def _check(period: BudgetPeriod, wanted: Wanted, hold: Decimal, span_us: int) -> None:
    """Refuse a hold that one budget cannot take."""
    budget = period.budget
    if wanted.rate.currency != budget.currency and wanted.rate.per_hour:
        message = (
            f"The price is in {wanted.rate.currency}, the team's budget in {budget.currency}. "
            "A site admin can price the cluster in that currency, or set a budget in this one."
        )
        raise Refused("other_currency", message)
    standing = standing_of(period)
    if not hold or not rules.shortage(standing, hold):
        return
    code = "exceeds_budget" if hold > budget.amount else "waiting_for_budget"
    raise Refused(
        code,
        rules.what_fits(
            standing,
            wanted.rate.per_hour,
            wanted_us=span_us,
            unit=wanted.unit,
            count=wanted.count,
        ),
    )


def _settle(lease: Lease, until: datetime) -> Decimal:
    """Charge what an open lease has run since it was settled last; cut where its parts are cut."""
    if lease.opened_at is None or lease.held_until is None:
        return Decimal(0)
    until = min(until, lease.held_until)
    end_us = min(lease.limit_us, lease.run_us + max(0, micros(until - lease.opened_at)))
    if end_us <= lease.settled_us:
        return Decimal(0)
    parts = list(lease.parts.select_related("period__budget"))
    cuts = {cut for part in parts for cut in (part.begin_us, part.end_us)}
    places = [lease.settled_us, *sorted(c for c in cuts if lease.settled_us < c < end_us), end_us]
    spans = [Span(begin_us=a, end_us=b) for a, b in pairwise(places)]
    Charge.objects.bulk_create([_charge(lease, span) for span in spans])
    for part in parts:
        begin, end = max(part.begin_us, lease.settled_us), min(part.end_us, end_us)
        if begin < end:
            moved = amount_of(lease.per_hour, Span(begin_us=begin, end_us=end))
            BudgetPeriod.objects.filter(pk=part.period_id).update(
                settled=F("settled") + moved, committed=F("committed") - moved
            )
    charged = amount_of(lease.per_hour, Span(begin_us=lease.settled_us, end_us=end_us))
    lease.settled_us = end_us
    lease.save(update_fields=["settled_us"])
    return charged


def _charge(lease: Lease, span: Span) -> Charge:
    return Charge(
        lease=lease,
        team_id=lease.team_id,
        begin_us=span.begin_us,
        end_us=span.end_us,
        begin_at=_instant(lease, span.begin_us),
        end_at=_instant(lease, span.end_us),
        amount=amount_of(lease.per_hour, span),
        currency=lease.currency,
    )


def _instant(lease: Lease, place_us: int) -> datetime:
    """Return when an open lease comes to a place of its running time."""
    opened_at = lease.opened_at or lease.reserved_at
    return opened_at + timedelta(microseconds=place_us - lease.run_us)


def _hold(lease: Lease, *, since: datetime) -> None:
    """Commit an open lease's rest by time, as far as every budget's periods can take their parts.

    Up to `since` it is held in any case: that time has passed, or was held before.
    """
    opened_at = lease.opened_at or since
    until = _instant(lease, lease.limit_us)
    begin = _instant(lease, lease.settled_us)
    plans = []
    for budget in _budgets(lease.team):
        zone = ZoneInfo(budget.team.time_zone)
        touched = rules.periods_of(PeriodKind(budget.period), begin, until, zone=zone)
        plans.append(lock_periods(budget, touched))
    held = {part.period_id: part for part in lease.parts.all()}
    for rows in plans:
        for row in rows:
            until = min(until, _affordable(lease, row, held.get(row.pk), begin, until))
            if until < row.end:
                break
    until = max(until, since, opened_at)
    lease.held_until = until
    spans: Spans = {}
    for rows in plans:
        for row in rows:
            span = _overlap(lease, row, begin, until)
            if not span.is_empty:
                spans[row.pk] = span
    _commit(lease, spans)
    lease.save(update_fields=["state", "opened_at", "held_until", "run_us"])


def _overlap(lease: Lease, row: BudgetPeriod, begin: datetime, until: datetime) -> Span:
    """Return the stretch of running time that lies in a period between two instants."""
    first, last = max(begin, row.start), min(until, row.end)
    opened_at = lease.opened_at or begin
    place = lease.run_us + micros(first - opened_at)
    return Span(begin_us=place, end_us=max(place, lease.run_us + micros(last - opened_at)))


def _affordable(
    lease: Lease, row: BudgetPeriod, part: Part | None, begin: datetime, until: datetime
) -> datetime:
    """Return until when a period can take the lease, at most to its end or `until`."""
    last = min(until, row.end)
    span = _overlap(lease, row, begin, last)
    standing = standing_of(row)
    own = Decimal(0)
    if part is not None:
        rest = Span(begin_us=part.begin_us, end_us=part.end_us).until(lease.settled_us)
        own = amount_of(lease.per_hour, rest)
    missing = rules.shortage(standing, amount_of(lease.per_hour, span) - own)
    if not missing or not lease.per_hour:
        return last if last < row.end else until
    if part is None:
        return max(begin, row.start)  # a period that it has no hold in yet takes all or nothing
    affordable = standing.available + own
    fitting_us = int(max(Decimal(0), affordable) * HOUR_US / lease.per_hour)
    return _instant(lease, span.begin_us + min(fitting_us, span.end_us - span.begin_us))


def _commit(lease: Lease, spans: Spans) -> None:
    """Make the lease's parts these, and the committed money of all periods to go with them."""
    for part in lease.parts.all():
        rest = Span(begin_us=part.begin_us, end_us=part.end_us).until(lease.settled_us)
        _add(part.period_id, -amount_of(lease.per_hour, rest))
    lease.parts.all().delete()
    for period_id, span in spans.items():
        Part.objects.create(
            lease=lease, period_id=period_id, begin_us=span.begin_us, end_us=span.end_us
        )
        _add(period_id, amount_of(lease.per_hour, span.until(lease.settled_us)))


def _add(period_id: int, money: Decimal) -> None:
    if money:
        BudgetPeriod.objects.filter(pk=period_id).update(committed=F("committed") + money)
