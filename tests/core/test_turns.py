"""Turns: two workers never share a row, and a stale one cannot write."""

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.apps.registry import Apps
from django.db import connection, models, transaction
from django.db.models.functions import Now

from portal.core import turns

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


class Row(turns.Turn):
    name = models.CharField(max_length=20)
    note = models.TextField(default="")

    class Meta:
        app_label = "core"
        apps = Apps()
        db_table = "test_turns_row"


@pytest.fixture(autouse=True)
def _table(transactional_db):
    with connection.schema_editor() as editor:
        editor.create_model(Row)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(Row)


def row(name="a", *, due_in=-timedelta(seconds=1), **columns) -> Row:
    made = Row.objects.create(name=name, **columns)
    Row.objects.filter(pk=made.pk).update(due_at=None if due_in is None else Now() + due_in)
    return made


def expire(*rows: Row) -> None:
    """Move the turn into the past, as if its seconds had gone by."""
    Row.objects.filter(pk__in=[r.pk for r in rows]).update(
        turn_expires_at=Now() - timedelta(seconds=1), due_at=Now() - timedelta(seconds=1)
    )


def seconds_until_due(made: Row) -> float | None:
    until = models.ExpressionWrapper(
        models.F("due_at") - Now(), output_field=models.DurationField()
    )
    found = Row.objects.annotate(until=until).values_list("until", flat=True).get(pk=made.pk)
    return found if found is None else found.total_seconds()


def in_threads(count: int, call):
    def run(number):
        try:
            return call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_nothing_due_means_no_turn():
    row(due_in=HOUR)
    row(due_in=None)
    assert turns.take_turn(Row.objects.all()) is None


def test_the_row_that_waits_longest_comes_first():
    names = {"c": 1, "a": 3, "b": 2}
    for name, hours in names.items():
        row(name, due_in=-hours * HOUR)
    taken = [turns.take_turn(Row.objects.all()) for _ in names]
    assert [Row.objects.get(pk=t.id).name for t in taken if t] == ["a", "b", "c"]
    assert turns.take_turn(Row.objects.all()) is None


def test_only_rows_of_the_queryset_are_taken():
    row("a", due_in=-HOUR)
    other = row("b")
    taken = turns.take_turn(Row.objects.filter(name="b"))
    assert taken is not None
    assert taken.id == other.pk


def test_two_workers_never_share_a_row():
    """Takes about a second: eight workers drain a hundred rows."""
    for _ in range(100):
        row()

    def drain(_number):
        mine = []
        while (taken := turns.take_turn(Row.objects.all())) is not None:
            mine.append(taken.id)
        return mine

    got = Counter(one for mine in in_threads(8, drain) for one in mine)
    assert len(got) == 100
    assert set(got.values()) == {1}


def test_a_row_that_is_being_taken_is_skipped_and_not_waited_for():
    first, second = row("a", due_in=-HOUR), row("b")
    with transaction.atomic():
        Row.objects.select_for_update().get(pk=first.pk)
        (taken,) = in_threads(1, lambda _n: turns.take_turn(Row.objects.all()))
    assert taken.id == second.pk


def test_a_stale_worker_cannot_write():
    made = row()
    stale = turns.take_turn(Row.objects.all())
    expire(made)
    assert not turns.apply(stale, note="too late")  # expired, though nobody took over yet
    fresh = turns.take_turn(Row.objects.all())
    assert fresh.id == stale.id
    assert not turns.apply(stale, note="too late")
    assert not turns.give_back(stale, due_in=HOUR)
    assert not turns.back_off(stale)
    assert turns.apply(fresh, note="mine")
    made.refresh_from_db()
    assert made.note == "mine"
    assert made.turn_token == fresh.token


def test_of_two_writers_at_once_only_the_holder_writes():
    made = row()
    stale = turns.take_turn(Row.objects.all())
    expire(made)
    fresh = turns.take_turn(Row.objects.all())
    barrier = threading.Barrier(2)

    def write(number):
        barrier.wait(5)
        return turns.apply((stale, fresh)[number], note=("stale", "fresh")[number])

    assert in_threads(2, write) == [False, True]
    made.refresh_from_db()
    assert made.note == "fresh"


def test_an_abandoned_turn_is_taken_over_only_when_it_expires():
    made = row()
    assert turns.take_turn(Row.objects.all(), seconds=60)
    turns.make_due(Row.objects.all())
    assert turns.take_turn(Row.objects.all()) is None
    assert turns.take_turn_on(Row.objects.all(), made.pk) is None
    expire(made)
    assert turns.take_turn(Row.objects.all())


def test_an_abandoned_row_comes_due_by_itself():
    made = row()
    turns.take_turn(Row.objects.all(), seconds=60)
    assert 50 < seconds_until_due(made) <= 60


def test_a_row_can_be_taken_before_it_is_due():
    made = row(due_in=HOUR)
    taken = turns.take_turn_on(Row.objects.all(), made.pk)
    assert taken.id == made.pk
    assert turns.take_turn_on(Row.objects.all(), made.pk) is None
    assert turns.take_turn_on(Row.objects.all(), 0) is None


def test_give_back_says_when_it_is_due_again():
    made = row(turn_failures=3)
    assert turns.give_back(turns.take_turn(Row.objects.all()), due_in=HOUR)
    assert 3590 < seconds_until_due(made) <= 3600
    made.refresh_from_db()
    assert (made.turn_token, made.turn_expires_at, made.turn_failures) == (None, None, 0)
    turns.make_due(Row.objects.all())
    assert turns.give_back(turns.take_turn(Row.objects.all()), due_in=None)
    assert seconds_until_due(made) is None


@pytest.mark.parametrize("due_in", [HOUR, None])
def test_what_a_service_made_due_during_the_turn_stays_due(due_in):
    row()
    taken = turns.take_turn(Row.objects.all())
    turns.make_due(Row.objects.all())
    assert turns.give_back(taken, due_in=due_in)
    assert turns.take_turn(Row.objects.all())


def test_back_off_grows_with_jitter_up_to_five_minutes():
    made, delays = row(), []
    for _ in range(12):
        Row.objects.update(due_at=Now())
        assert turns.back_off(turns.take_turn(Row.objects.all()))
        delays.append(seconds_until_due(made))
    assert 0 < delays[0] <= 2
    assert 149 < delays[-1] <= 300
    made.refresh_from_db()
    assert made.turn_failures == 12


def test_passes_go_on_after_one_that_raises(caplog):
    rows = [row(name, due_in=-hours * HOUR) for name, hours in (("a", 3), ("b", 2), ("c", 1))]
    seen = []

    def work(taken):
        name = Row.objects.get(pk=taken.id).name
        seen.append(name)
        if name == "b":
            raise ValueError("broken row")
        turns.apply(taken, note="done")
        return HOUR if name == "a" else None

    with caplog.at_level(logging.ERROR):
        assert turns.run_passes(Row.objects.all(), work, limit=10) == 3
    assert seen == ["a", "b", "c"]
    assert seconds_until_due(rows[0]) > 3500
    assert 0 < seconds_until_due(rows[1]) < 10
    assert seconds_until_due(rows[2]) is None
    assert [r.turn_failures for r in Row.objects.order_by("name")] == [0, 1, 0]
    (record,) = caplog.records
    assert record.message == "pass failed"
    assert "broken row" in caplog.text  # the traceback is there


def test_passes_stop_at_their_limit():
    for _ in range(3):
        row()
    assert turns.run_passes(Row.objects.all(), lambda _taken: None, limit=2) == 2
    assert Row.objects.exclude(due_at=None).count() == 1


def test_a_task_at_its_time_limit_gives_the_row_back_and_ends():
    rows = [row(), row()]

    def work(_taken):
        raise SoftTimeLimitExceeded

    with pytest.raises(SoftTimeLimitExceeded):
        turns.run_passes(Row.objects.all(), work, limit=10)
    assert sorted(Row.objects.values_list("turn_failures", flat=True)) == [0, 1]
    assert all(r.turn_token is None for r in Row.objects.filter(pk__in=[r.pk for r in rows]))


def test_a_turn_is_not_taken_inside_a_transaction():
    row()
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        turns.take_turn(Row.objects.all())


def test_apply_stands_or_falls_with_the_transaction():
    made = row()
    taken = turns.take_turn(Row.objects.all())
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        turns.apply(taken, note="lost")
        1 / 0  # noqa: B018
    made.refresh_from_db()
    assert made.note == ""
