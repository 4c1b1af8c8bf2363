"""Tables of billing.

Only `billing.services` writes here. A lease is a hold on budgets until a stated instant;
`BudgetPeriod` rows carry what is settled and what is committed; `Part` says which stretch of a
lease's running time is committed to which period; a `Charge` is what was settled, for good.
"""

from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeBoundary, RangeOperators
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from billing.values import LeaseState, PeriodKind
from portal.core.fields import id_field
from portal.teams.models import Team, User


def money_field(**options: Any) -> Any:
    """Return a column of money or of money an hour, exact to 12 places."""
    return models.DecimalField(max_digits=30, decimal_places=12, **options)


class Validity(Func):
    """The time in which a price is valid, as a range."""

    function = "TSTZRANGE"
    output_field: Any = DateTimeRangeField()


class Price(models.Model):
    """What an hour of something costs, for a time; history is kept, nothing is overwritten."""

    id = id_field()
    sku = models.CharField(max_length=200, help_text="opaque, such as cluster/local/gpu/h100")
    currency = models.CharField(max_length=3)
    per_hour = money_field()
    valid_from = models.DateTimeField()
    valid_until = models.DateTimeField(null=True, blank=True, help_text="empty: until replaced")
    source = models.CharField(max_length=250)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(per_hour__gte=0), name="price_not_negative"),
            ExclusionConstraint(
                name="price_once_at_a_time",
                expressions=[
                    ("sku", RangeOperators.EQUAL),
                    (
                        Validity("valid_from", "valid_until", RangeBoundary()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.per_hour} {self.currency}"


class Lease(models.Model):
    """Time on machines, held in advance for one subject; times are its own running time."""

    id = id_field()
    subject = models.CharField(max_length=80, db_index=True, help_text="opaque: job:01J…")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="leases")
    state = models.CharField(max_length=8, choices=[(s.value, s.value) for s in LeaseState])
    per_hour = money_field(help_text="frozen when it was reserved")
    currency = models.CharField(max_length=3)
    limit_us = models.BigIntegerField(help_text="running time that is held in all")
    settled_us = models.BigIntegerField(default=0, help_text="running time that is charged")
    run_us = models.BigIntegerField(default=0, help_text="running time before opened_at")
    reserved_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True)
    held_until = models.DateTimeField(null=True, help_text="while open: money is held until then")
    closed_at = models.DateTimeField(null=True)
    unbilled_us = models.BigIntegerField(default=0, help_text="ran beyond what was held")
    facts = models.JSONField(default=dict, help_text="user, cluster, sku, definition, gpus, tags")

    class Meta:
        indexes = [
            models.Index(
                fields=["team"], name="lease_alive", condition=~Q(state=LeaseState.CLOSED)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(per_hour__gte=0), name="lease_rate_not_negative"),
            models.CheckConstraint(
                condition=Q(settled_us__gte=0, settled_us__lte=F("limit_us")),
                name="lease_settled_within_limit",
            ),
            models.CheckConstraint(
                condition=Q(
                    state=LeaseState.OPEN, opened_at__isnull=False, held_until__isnull=False
                )
                | ~Q(state=LeaseState.OPEN),
                name="lease_open_has_instants",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.state}"


class Charge(models.Model):
    """A stretch of a lease that is settled; insert-only."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="charges")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="charges")
    begin_us = models.BigIntegerField()
    end_us = models.BigIntegerField()
    begin_at = models.DateTimeField()
    end_at = models.DateTimeField()
    amount = money_field()
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["lease", "begin_us"], name="charge_once"),
            models.CheckConstraint(condition=Q(end_us__gt=F("begin_us")), name="charge_has_time"),
        ]
        indexes = [models.Index(fields=["team", "begin_at"], name="charge_of_team")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


class Budget(models.Model):
    """What a team may spend in each period; a hard one refuses what would go over."""

    id = id_field()
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="budgets")
    period = models.CharField(max_length=7, choices=[(k.value, k.value) for k in PeriodKind])
    amount = money_field()
    currency = models.CharField(max_length=3)
    hard = models.BooleanField(default=True)
    thresholds = models.JSONField(default=list, help_text="texts of decimals, such as 0.8")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, help_text="set by delete")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} a {self.period}"


class BudgetPeriod(models.Model):
    """One period of a budget, with its two sums, which do not move with the clock."""

    id = models.BigAutoField(primary_key=True)
    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="periods")
    start = models.DateTimeField()
    end = models.DateTimeField()
    settled = money_field(default=0)
    committed = money_field(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["budget", "start"], name="budget_period_once"),
            models.CheckConstraint(
                condition=Q(settled__gte=0, committed__gte=0), name="budget_period_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} from {self.start:%Y-%m-%d}"


class Part(models.Model):
    """Which stretch of a lease's running time is committed to a budget period."""

    id = models.BigAutoField(primary_key=True)
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="parts")
    period = models.ForeignKey(BudgetPeriod, on_delete=models.CASCADE, related_name="parts")
    begin_us = models.BigIntegerField()
    end_us = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["lease", "period"], name="part_once"),
        ]

    def __str__(self) -> str:
        return f"{self.begin_us} to {self.end_us}"
