"""The ledger against the ground truth: recomputation, whose differences are alarms."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum

from billing.models import BudgetPeriod, Charge, Lease, Part
from billing.pricing import amount_of
from billing.values import Span
from portal.teams.models import Team
from portal.teams.services.limits import lock_quota

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A sum of the ledger that is not what it must be."""

    what: str
    stored: Decimal
    found: Decimal


@transaction.atomic
def differences(team: Team) -> list[Difference]:
    """Recompute the team's ledger from leases and charges, with its lock held."""
    lock_quota(team)
    return [*_of_periods(team), *_of_leases(team)]


def _of_periods(team: Team) -> Iterator[Difference]:
    """Compare settled with the charges that begin in the period, committed with what parts hold."""
    for period in BudgetPeriod.objects.filter(budget__team=team).select_related("budget"):
        charges = Charge.objects.filter(
            team=team,
            currency=period.budget.currency,
            begin_at__gte=period.start,
            begin_at__lt=period.end,
        )
        settled = charges.aggregate(sum=Sum("amount"))["sum"] or NOTHING
        if settled != period.settled:
            yield Difference(what=f"{period} settled", stored=period.settled, found=settled)
        parts = Part.objects.filter(period=period).select_related("lease")
        committed = sum((_held(part) for part in parts), NOTHING)
        if committed != period.committed:
            yield Difference(what=f"{period} committed", stored=period.committed, found=committed)


def _of_leases(team: Team) -> Iterator[Difference]:
    """Compare a lease's charges with the amount of its settled running time."""
    for lease in Lease.objects.filter(team=team).annotate(charged=Sum("charges__amount")):
        whole = amount_of(lease.per_hour, Span(begin_us=0, end_us=lease.settled_us))
        charged = lease.charged or NOTHING
        if charged != whole:
            yield Difference(what=f"{lease} charges", stored=charged, found=whole)


def _held(part: Part) -> Decimal:
    span = Span(begin_us=part.begin_us, end_us=part.end_us).until(part.lease.settled_us)
    return amount_of(part.lease.per_hour, span)
