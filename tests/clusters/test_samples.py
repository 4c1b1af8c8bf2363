"""Samples and their rollups: whatever way samples come, each bucket has each of them once."""

import random
from collections import defaultdict

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from clusters.samples import read, rollup, store, tables
from clusters.samples.cells import floor, pack, unpack
from clusters.samples.store import Sample
from clusters.samples.tables import MINUTES, QUARTERS, RAW
from portal.core import clock, ids

pytestmark = pytest.mark.django_db
CPU, GPU = "cpu_utilization_ratio", 'gpu_utilization_ratio{gpu="0"}'


@pytest.fixture(autouse=True)
def _partitions() -> None:
    tables.prepare()


@pytest.fixture
def now() -> int:
    return int(clock.now().timestamp())


def subject() -> str:
    return f"job:{ids.new()}/0"


def rolled(name: str, level, now: int) -> dict:
    """Series → bucket → (count, sum, largest) as the rollup of a subject has them."""
    found = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT extract(epoch FROM at)::bigint, data FROM {level.name} WHERE subject = %s",  # noqa: S608 - a constant
            [name],
        )
        for start, data in cursor.fetchall():
            for series, at, cell in unpack(data, start=start, step=level.step):
                found[series][at] = cell
    return dict(found)


def expected(samples: list[Sample], step: int) -> dict:
    values = defaultdict(lambda: defaultdict(list))
    for sample in {sample.at: sample for sample in samples}.values():
        for series, value in sample.series.items():
            values[series][floor(sample.at, step)].append(value)
    return {
        series: {at: (len(got), sum(got), max(got)) for at, got in cells.items()}
        for series, cells in values.items()
    }


@examples(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_order_repetition_and_crash_give_the_same_sums(data) -> None:
    """Samples of an hour in random bundles, some twice, with passes and crashes between."""
    chaos = random.Random(data.draw(st.integers(0, 1 << 30)))
    now = int(clock.now().timestamp())
    name = subject()
    count = data.draw(st.integers(1, 120))
    ages = chaos.sample(range(1, 3800), count)
    samples = [
        Sample(
            subject=name,
            at=now - age,
            series={CPU: chaos.randint(0, 100)} | ({GPU: age} if chaos.random() < 0.5 else {}),
        )
        for age in ages
    ]
    waiting = samples + chaos.sample(samples, len(samples) // 3)
    chaos.shuffle(waiting)
    while waiting:
        size = chaos.randint(1, 40)
        store.take(waiting[:size])
        waiting = waiting[size:]
        if chaos.random() < 0.4:
            rollup.roll_up()
        if chaos.random() < 0.3:
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                rollup.roll_up()
                raise ZeroDivisionError
    rollup.roll_up()
    assert rolled(name, MINUTES, now) == expected(samples, 60)
    assert rolled(name, QUARTERS, now) == expected(samples, 900)


def test_a_late_sample_is_rolled_up_into_its_own_minute(now) -> None:
    name = subject()
    first = Sample(subject=name, at=now - 3000, series={CPU: 0.25, GPU: 1.0})
    store.take([first, Sample(subject=name, at=now - 60, series={CPU: 0.5})])
    rollup.roll_up()
    late = Sample(subject=name, at=now - 2999, series={CPU: 0.75})
    store.take([late])
    rollup.roll_up()
    everything = [first, late, Sample(subject=name, at=now - 60, series={CPU: 0.5})]
    assert rolled(name, MINUTES, now) == expected(everything, 60)
    assert rolled(name, QUARTERS, now) == expected(everything, 900)


def test_what_is_too_old_or_too_far_ahead_is_not_taken(now) -> None:
    name = subject()
    for at in (0.0, now - 66 * 60, now + 11 * 60, 1e10):
        store.take([Sample(subject=name, at=at, series={CPU: 1.0})])
    store.take([Sample(subject=name, at=now - 10, series={})])
    assert read.newest(name) == []


def test_a_sample_comes_once_and_the_first_word_stays(now) -> None:
    name = subject()
    for value in (0.5, 0.9):
        store.take([Sample(subject=name, at=now + 0.5, series={CPU: value})])
    assert [found.series for found in read.after(name, 0)] == [{CPU: 0.5}]


@pytest.mark.parametrize(("step", "true"), [(5, 5), (60, 60), (90, 120), (3600, 3600)])
def test_every_step_gives_the_same_mean_before_and_after_a_pass(now, step, true) -> None:
    name = subject()
    samples = [
        Sample(subject=name, at=now - age, series={CPU: float(age % 7)})
        for age in range(1, 3000, 5)
    ]
    store.take(samples)
    begin = floor(now - 3600, 3600)
    found = []
    for _again in range(2):
        source = read.source_of(begin=begin, step=step)
        assert source.step == true
        got = read.buckets(name, begin=begin, end=now, source=source)
        found.append(got[name])
        rollup.roll_up()
    assert found[0] == found[1] == expected(samples, true)


def test_a_prefix_gives_all_ranks_and_nothing_else(now) -> None:
    job = ids.new()
    for rank in (0, 1, 10):
        store.take([Sample(subject=f"job:{job}/{rank}", at=now, series={CPU: rank})])
    store.take([Sample(subject=f"job:{job}x/0", at=now, series={CPU: 9})])
    source = read.source_of(begin=now - 60, step=10)
    found = read.buckets(f"job:{job}/", begin=now - 60, end=now + 1, source=source)
    assert sorted(found) == [f"job:{job}/{rank}" for rank in (0, 1, 10)]


def test_long_ago_only_coarse_buckets_are_left(now, settings) -> None:
    settings.SAMPLE_DAYS = (30, 365)
    assert read.source_of(begin=now - 3600, step=10).level is None
    assert read.source_of(begin=now - 3 * 3600, step=10) == read.Source(level=MINUTES, step=60)
    assert read.source_of(begin=now - 31 * 86400, step=61) == read.Source(level=QUARTERS, step=900)


def test_old_partitions_go_whole_and_raw_ones_only_once_rolled_up(now, settings) -> None:
    with connection.cursor() as cursor:
        for table, age in ((RAW, 5 * 3600), (MINUTES, 40 * 86400), (QUARTERS, 500 * 86400)):
            number = (now - age) // table.every
            cursor.execute(
                f"CREATE TABLE {table.name}_{number} PARTITION OF {table.name} FOR VALUES FROM"
                f" (to_timestamp({number * table.every}))"
                f" TO (to_timestamp({(number + 1) * table.every}))"
            )
    settings.SAMPLE_DAYS = (30, 365)
    tables.drop_old(rolled_until=now - 4 * 3600)
    assert (now - 5 * 3600) // RAW.every in tables.partitions(RAW)
    assert (now - 40 * 86400) // MINUTES.every not in tables.partitions(MINUTES)
    assert (now - 500 * 86400) // QUARTERS.every not in tables.partitions(QUARTERS)
    rollup.roll_up()
    assert (now - 5 * 3600) // RAW.every not in tables.partitions(RAW)


def test_a_missing_partition_is_said_and_made(now) -> None:
    number = now // RAW.every
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {RAW.name}_{number}")
    sample = Sample(subject=subject(), at=number * RAW.every + 1, series={CPU: 1.0})
    with pytest.raises(IntegrityError), transaction.atomic():
        store.take([sample])
    tables.prepare()
    store.take([sample])
    assert read.newest(sample.subject) == [sample]


@given(
    st.dictionaries(
        st.sampled_from((CPU, GPU, "x")),
        st.dictionaries(
            st.integers(0, 59),
            st.tuples(st.integers(1, 1000), st.floats(-1e18, 1e18), st.floats(-1e18, 1e18)),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_a_row_gives_back_what_was_packed(series) -> None:
    placed = {
        name: {600 + 60 * place: cell for place, cell in cells.items()}
        for name, cells in series.items()
    }
    found = defaultdict(dict)
    for name, at, cell in unpack(pack(placed, start=600, step=60), start=600, step=60):
        found[name][at] = cell
    assert found == placed
