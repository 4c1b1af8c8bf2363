"""The ledger under random histories: every second once, and every sum exact."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from threading import Barrier, Thread

import pytest
from django.db import IntegrityError, connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing import services as ledger
from billing.models import Budget, BudgetPeriod, Charge, Lease, Price
from billing.pricing import amount
from billing.reconcile import differences
from billing.services import Wanted
from billing.values import LeaseState, Rate, micros
from portal.core.errors import Refused
from portal.teams.models import Team
from tests.people import World, make_world

BEGIN = datetime(2026, 3, 27, 22, 0, tzinfo=UTC)
"""Daylight saving begins in Berlin two days later, and a month and a quarter end two days after."""


@pytest.fixture
def world(db) -> World:
    return make_world()


def budget(team: Team, amount_: str = "1000", **more: object) -> Budget:
    given = {"period": "month", "currency": "USD", "hard": True} | more
    return Budget.objects.create(team=team, amount=Decimal(amount_), **given)


def wanted(team: Team, *, hours: float = 10, rate: str = "2.5", **more: object) -> Wanted:
    return Wanted(
        subject="job:1",
        team=team,
        rate=Rate(per_hour=Decimal(rate), currency="USD"),
        limit=timedelta(hours=hours),
        facts={},
        **more,
    )


def sums(row: Budget, start: datetime | None = None) -> tuple[Decimal, Decimal]:
    rows = BudgetPeriod.objects.filter(budget=row).order_by("start")
    found = rows.get(start=start) if start else rows.last()
    return found.settled, found.committed


def test_a_hold_is_the_worst_case_and_becomes_what_really_ran(world) -> None:
    row = budget(world.team)
    lease = ledger.reserve(wanted(world.team), now=BEGIN)
    assert sums(row) == (0, 25)
    ledger.open_lease(lease.pk, started_at=BEGIN + timedelta(hours=1))
    assert ledger.settle(lease.pk, until=BEGIN + timedelta(hours=3)) == 5
    assert sums(row) == (5, 20)
    closed = ledger.close(lease.pk, ended_at=BEGIN + timedelta(hours=4))
    assert (closed.state, closed.unbilled_us) == (LeaseState.CLOSED, 0)
    assert sums(row) == (Decimal("7.5"), 0)
    ledger.close(lease.pk, ended_at=BEGIN + timedelta(hours=9))
    assert sums(row) == (Decimal("7.5"), 0)
    assert differences(world.team) == []


def test_a_hold_that_does_not_fit_says_what_would(world) -> None:
    budget(world.team, "100")
    ledger.reserve(wanted(world.team, hours=20), now=BEGIN)
    asked = wanted(world.team, hours=40, unit="GPUs", count=4)
    with pytest.raises(Refused) as caught:
        ledger.reserve(asked, now=BEGIN)
    assert caught.value.code == "waiting_for_budget"
    said = "4 GPUs for 20 h fits; 4 GPUs for 40 h needs 50.00 USD more."
    assert caught.value.message == said
    with pytest.raises(Refused) as caught:
        ledger.reserve(wanted(world.team, hours=41), now=BEGIN)
    assert caught.value.code == "exceeds_budget"
    assert Lease.objects.count() == 1


def test_what_costs_nothing_needs_no_money(world) -> None:
    row = budget(world.team)
    paid = ledger.reserve(wanted(world.team), now=BEGIN)
    Budget.objects.filter(pk=row.pk).update(amount=1)
    free = ledger.reserve(wanted(world.team, rate="0"), now=BEGIN)
    assert ledger.move_reserved(free.pk, now=BEGIN + timedelta(days=40))
    opened = ledger.open_lease(free.pk, started_at=BEGIN)
    assert opened.held_until == BEGIN + timedelta(hours=10)
    assert sums(row, BEGIN.replace(day=1, hour=0, minute=0))[1] == 25
    ledger.close(paid.pk, ended_at=BEGIN)
    assert differences(world.team) == []


def test_every_budget_must_agree_and_a_soft_one_never_refuses(world) -> None:
    soft = budget(world.team, "1", hard=False)
    quarter = budget(world.team, "60", period="quarter")
    ledger.reserve(wanted(world.team), now=BEGIN)
    assert (sums(soft), sums(quarter)) == ((0, 25), (0, 25))
    with pytest.raises(Refused):
        ledger.reserve(wanted(world.team, hours=20), now=BEGIN)
    assert (sums(soft), sums(quarter)) == ((0, 25), (0, 25))


def test_another_currency_is_refused_with_the_remedy(world) -> None:
    budget(world.team, currency="EUR")
    with pytest.raises(Refused, match="in USD, the team's budget in EUR"):
        ledger.reserve(wanted(world.team), now=BEGIN)


def test_a_lease_over_the_edge_of_a_month_is_split_by_time(world) -> None:
    Team.objects.filter(pk=world.team.pk).update(time_zone="Europe/Berlin")
    world.team.refresh_from_db()
    row = budget(world.team)
    edge = datetime(2026, 3, 31, 22, tzinfo=UTC)
    lease = ledger.reserve(wanted(world.team, hours=120), now=BEGIN)
    ledger.open_lease(lease.pk, started_at=edge - timedelta(hours=30))
    march, april = BudgetPeriod.objects.filter(budget=row).order_by("start")
    assert (march.end, april.start) == (edge, edge)
    assert (march.committed, april.committed) == (75, 225)
    ledger.close(lease.pk, ended_at=edge + timedelta(hours=2))
    march.refresh_from_db()
    april.refresh_from_db()
    assert (march.settled, april.settled) == (75, 5)
    assert Charge.objects.order_by("begin_us").first().end_at == edge
    assert differences(world.team) == []


def test_money_is_held_to_the_edge_when_the_next_month_cannot_take_its_part(world) -> None:
    row = budget(world.team, "100")
    edge = datetime(2026, 4, 1, tzinfo=UTC)
    lease = ledger.reserve(wanted(world.team, hours=40), now=edge - timedelta(hours=20))
    other = ledger.reserve(
        wanted(world.team, hours=30), now=edge + timedelta(hours=1)
    )  # takes April's money first
    opened = ledger.open_lease(lease.pk, started_at=edge - timedelta(hours=10))
    assert opened.held_until == edge
    assert not ledger.renew(lease.pk, now=edge - timedelta(minutes=1))
    ledger.close(other.pk, ended_at=edge + timedelta(hours=1))
    assert ledger.renew(lease.pk, now=edge - timedelta(seconds=1))
    lease.refresh_from_db()
    assert lease.held_until == edge + timedelta(hours=30)
    closed = ledger.close(lease.pk, ended_at=edge + timedelta(hours=31))
    assert closed.unbilled_us == micros(timedelta(hours=1))
    assert sums(row) == (75, 0)
    assert differences(world.team) == []


def test_a_requeue_charges_what_ran_and_holds_what_remains(world) -> None:
    row = budget(world.team)
    lease = ledger.reserve(wanted(world.team), now=BEGIN)
    ledger.open_lease(lease.pk, started_at=BEGIN)
    ledger.put_back(lease.pk, at=BEGIN + timedelta(hours=4))
    assert sums(row) == (10, 15)
    again = ledger.open_lease(lease.pk, started_at=BEGIN + timedelta(hours=9))
    assert again.held_until == BEGIN + timedelta(hours=15)
    ledger.close(lease.pk, ended_at=BEGIN + timedelta(hours=20))
    assert sums(row) == (25, 0)
    assert differences(world.team) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "settle", "put_back", "close", "renew", "move", "cut", "budget"]),
        st.integers(0, 3),
        st.integers(0, 60 * 60 * 60),
        st.integers(-5_000_000, 5_000_000),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rates=st.lists(st.decimals(0, 500, places=9), min_size=1, max_size=4),
    limits=st.lists(st.integers(1, 400_000), min_size=4, max_size=4),
    steps=STEPS,
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
)
def test_any_history_keeps_every_sum(world, rates, limits, steps, zone) -> None:
    """Random starts, requeues, skew, edges of months and daylight saving, and cut budgets."""
    team = world.team
    try:
        with transaction.atomic():
            Team.objects.filter(pk=team.pk).update(time_zone=zone)
            team.refresh_from_db()
            rows = [budget(team, "5000"), budget(team, "9000", period="quarter", hard=False)]
            leases = []
            for number, rate in enumerate(rates):
                asked = Wanted(
                    subject=f"job:{number}",
                    team=team,
                    rate=Rate(per_hour=rate, currency="USD"),
                    limit=timedelta(seconds=limits[number]),
                    facts={},
                )
                try:
                    leases.append(ledger.reserve(asked, now=BEGIN))
                except Refused:
                    continue
            now = BEGIN
            for verb, which, seconds, skew in steps:
                now += timedelta(seconds=seconds)
                at = now + timedelta(microseconds=skew)
                if verb in ("cut", "budget"):
                    Budget.objects.filter(pk=rows[which % 2].pk).update(amount=Decimal(seconds))
                elif leases:
                    _step(verb, leases[which % len(leases)].pk, at)
                assert differences(team) == []
            for lease in leases:
                ledger.close(lease.pk, ended_at=now + timedelta(days=40))
            assert differences(team) == []
            assert not BudgetPeriod.objects.exclude(committed=0).exists()
            for lease in Lease.objects.all():
                spans = list(lease.charges.order_by("begin_us").values_list("begin_us", "end_us"))
                assert all(a[1] == b[0] for a, b in pairwise(spans))
                charged = sum(lease.charges.values_list("amount", flat=True), Decimal(0))
                assert charged == amount(lease.per_hour, lease.settled_us)
            raise _Undo
    except _Undo:
        pass


class _Undo(Exception):
    pass


def _step(verb: str, lease_id: str, at: datetime) -> None:
    match verb:
        case "open":
            ledger.open_lease(lease_id, started_at=at)
        case "settle":
            ledger.settle(lease_id, until=at)
        case "put_back":
            ledger.put_back(lease_id, at=at)
        case "close":
            ledger.close(lease_id, ended_at=at)
        case "renew":
            ledger.renew(lease_id, now=at)
        case "move":
            ledger.move_reserved(lease_id, now=at)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_never_go_over_a_hard_cap(transactional_db) -> None:
    """40 threads want 10 USD each of a budget of 130: 13 get it, and not a cent more."""
    team = make_world().team
    row = budget(team, "130")
    barrier, refused = Barrier(40), []

    def work() -> None:
        try:
            barrier.wait()
            ledger.reserve(wanted(team, hours=4), now=BEGIN)
        except Refused as error:
            refused.append(error.code)
        finally:
            connections.close_all()

    threads = [Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (Lease.objects.count(), len(refused)) == (13, 27)
    assert set(refused) == {"waiting_for_budget"}
    assert sums(row) == (0, 130)
    assert differences(team) == []


def test_prices_of_one_thing_do_not_overlap(world) -> None:
    first = {"sku": "cluster/x/gpu/h100", "currency": "USD", "per_hour": "2", "source": "list"}
    Price.objects.create(**first, valid_from=BEGIN, valid_until=BEGIN + timedelta(days=1))
    Price.objects.create(**first, valid_from=BEGIN + timedelta(days=1))
    with pytest.raises(IntegrityError), transaction.atomic():
        Price.objects.create(**first, valid_from=BEGIN + timedelta(days=9))
