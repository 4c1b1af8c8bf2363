"""Time becomes money in one function; whatever way it is cut, the parts are the whole."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing import budgets, pricing
from billing.budgets import Standing, period_of, periods_of
from billing.values import HOUR_US, PeriodKind, Quantities, RateCard, Span, instant_us, micros
from portal.core.errors import Invalid, Refused

RATES = st.decimals(min_value=0, max_value=100_000, places=12)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo"]
)
INSTANTS = st.integers(0, 15 * 365 * 86_400).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(RATES, st.lists(st.integers(0, 10**13), max_size=20), st.integers(0, 10**13))
def test_however_a_time_is_cut_the_parts_add_up_to_the_whole(rate, cuts, whole) -> None:
    places = sorted({0, whole, *(cut for cut in cuts if cut <= whole)})
    spans = [Span(begin_us=a, end_us=b) for a, b in pairwise(places)]
    parts = [pricing.amount_of(rate, span) for span in spans]
    assert sum(parts, Decimal(0)) == pricing.amount(rate, whole)
    assert all(part >= 0 for part in parts)


def test_an_hour_costs_its_rate_and_halves_are_even() -> None:
    assert pricing.amount(Decimal("2.5"), HOUR_US) == Decimal("2.5")
    assert pricing.amount(Decimal("0.0000000018"), 1_000_000) == 0
    assert pricing.amount(Decimal("0.0000000054"), 1_000_000) == Decimal("2e-12")


@given(
    st.decimals(min_value=0, max_value=10**9, places=12),
    st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any),
)
def test_shares_lose_nothing(whole, weights) -> None:
    assert sum(pricing.shares(whole, weights), Decimal(0)) == whole


def test_a_rate_is_made_of_all_that_is_asked_for() -> None:
    card = RateCard(
        currency="USD",
        node_hour=Decimal("0.10"),
        gpu_hour={"h100": Decimal("2.50"), "*": Decimal(1)},
        cpu_hour=Decimal("0.01"),
        memory_gib_hour=Decimal("0.001"),
    )
    wanted = Quantities(
        nodes=2,
        gpus_per_node=8,
        gpu_type="H100",
        cpus_per_node=10,
        memory_bytes_per_node=100 << 30,
    )
    assert pricing.rate_of(card, wanted).per_hour == Decimal("40.6")
    other = Quantities(nodes=1, gpus_per_node=3, gpu_type="l4")
    assert pricing.rate_of(card, other).per_hour == Decimal("3.10")


def test_a_gpu_without_a_price_is_refused_and_a_card_may_be_zero() -> None:
    card = RateCard(currency="USD", gpu_hour={"h100": Decimal(2)})
    with pytest.raises(Refused, match="no price for l4"):
        pricing.rate_of(card, Quantities(gpus_per_node=1, gpu_type="l4"))
    assert pricing.rate_of(card, Quantities(cpus_per_node=9)).per_hour == 0


@pytest.mark.parametrize(
    "text",
    ["", "abc", "-1", "NaN", "Infinity", "1e13", "0.0000000000001", "1,5", None, f"1.{'0' * 40}1"],
)
def test_an_amount_that_is_none_is_said(text) -> None:
    with pytest.raises(Invalid) as caught:
        pricing.parse_amount(text, field="amount")
    assert caught.value.errors[0].pointer == "/amount"


@pytest.mark.parametrize("text", ["US", "USDT", "U$D", "\uff35\uff33\uff24", ""])
def test_a_currency_has_three_letters(text) -> None:
    with pytest.raises(Invalid):
        pricing.parse_currency(text)
    assert pricing.parse_currency(" eur ") == "EUR"


@given(st.sampled_from(PeriodKind), INSTANTS, ZONES)
def test_each_instant_lies_in_one_period_and_periods_touch(kind, instant, name) -> None:
    zone = ZoneInfo(name)
    period = period_of(kind, instant, zone=zone)
    assert period.start <= instant < period.end
    if kind is not PeriodKind.TOTAL:
        local = period.start.astimezone(zone)
        assert (local.day, local.hour) == (1, 0)
        assert period_of(kind, period.end, zone=zone).start == period.end
        before = period_of(kind, period.start - timedelta(microseconds=1), zone=zone)
        assert before.end == period.start


@given(st.sampled_from(PeriodKind), INSTANTS, st.timedeltas(timedelta(0), timedelta(800)), ZONES)
def test_a_span_is_covered_by_its_periods_without_hole(kind, begin, length, name) -> None:
    found = periods_of(kind, begin, begin + length, zone=ZoneInfo(name))
    assert found[0].start <= begin
    assert found[-1].end >= begin + length
    assert all(a.end == b.start for a, b in pairwise(found))


def test_months_and_quarters_know_february_and_daylight_saving() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    leap = period_of(PeriodKind.MONTH, datetime(2028, 2, 29, 12, tzinfo=UTC), zone=berlin)
    assert leap.end - leap.start == timedelta(days=29)
    march = period_of(PeriodKind.MONTH, datetime(2026, 3, 10, tzinfo=UTC), zone=berlin)
    assert march.end - march.start == timedelta(days=31, hours=-1)
    october = period_of(PeriodKind.QUARTER, datetime(2026, 11, 1, tzinfo=UTC), zone=berlin)
    assert october.end - october.start == timedelta(days=92, hours=1)


def standing(**more: object) -> Standing:
    given = {"amount": "1000", "settled": "100", "committed": "781.8"} | more
    money = {name: Decimal(str(value)) for name, value in given.items()}
    return Standing(**money, currency="USD", hard=True)


def test_what_would_fit_is_said_exactly() -> None:
    said = budgets.what_fits(
        standing(), Decimal("19.7"), wanted_us=12 * HOUR_US, unit="GPUs", count=8
    )
    assert said == "8 GPUs for 6 h fits; 8 GPUs for 12 h needs 118.20 USD more."
    full = budgets.what_fits(
        standing(committed="900"), Decimal(1), wanted_us=HOUR_US, unit="GPUs", count=1
    )
    assert full == "1 GPUs for 1 h needs 1.00 USD more."


def test_thresholds_and_the_straight_line() -> None:
    marks = [Decimal("0.5"), Decimal("0.8"), Decimal(1)]
    assert budgets.reached(standing(), marks) == Decimal("0.8")
    assert budgets.reached(standing(settled="0", committed="0"), marks) is None
    assert budgets.reached(standing(amount="0"), marks) == 1
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    period = budgets.Period(start=begin, end=datetime(2026, 7, 1, tzinfo=UTC))
    now = begin + timedelta(days=10)
    half = standing(settled="400", committed="0")
    gone = budgets.runs_out_at(half, Decimal(100), period, since=begin, now=now)
    assert gone == begin + timedelta(days=20)
    slow = standing(settled="10", committed="0")
    assert budgets.runs_out_at(slow, Decimal(0), period, since=begin, now=now) is None


def test_instants_are_whole_microseconds() -> None:
    assert micros(timedelta(days=1, microseconds=7)) == 86_400_000_007
    assert instant_us(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)) == 1_000_005
