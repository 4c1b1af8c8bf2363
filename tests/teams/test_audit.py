"""The audit chain: sealed in order, insert-only, and every damage is found."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import InternalError, ProgrammingError, connection, transaction
from django.db.models import F

from portal.core import clock
from portal.teams import reconcile
from portal.teams.models import AuditEvent, AuditSeal
from portal.teams.services.events import record_event
from tests.threads import in_threads

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
TABLES = ("teams_auditevent", "teams_auditseal")


def record(*names: str) -> list[str]:
    """Write one audit record a name, each in its own transaction; returns their ids."""
    for name in names:
        with transaction.atomic():
            record_event("test.done", subject=name, facts={"n": name}, audit=True)
    return [AuditEvent.objects.get(subject=name).pk for name in names]


def order() -> list[str]:
    """The subjects of the sealed events, in the order of the chain."""
    by_id = dict(AuditEvent.objects.values_list("pk", "subject"))
    ids = AuditSeal.objects.order_by("position").values_list("event_id", flat=True)
    return [by_id[pk] for pk in ids]


def faults(**given) -> list[str]:
    return [fault.what for fault in reconcile.verify_audit(**given)]


@contextmanager
def damage():
    """A cursor of the owner, with the triggers off: what a thief with the database could do."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_change")
        yield cursor
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change")


@contextmanager
def open_transaction(subject: str):
    """A transaction in another thread that has written a record and not yet committed."""
    written, go = threading.Event(), threading.Event()

    def run():
        try:
            with transaction.atomic():
                record_event("test.done", subject=subject, audit=True)
                written.set()
                go.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert written.wait(10)
    try:
        yield
    finally:
        go.set()
        thread.join(10)


def seal_until(count: int) -> None:
    """Seal until the chain has that length: other transactions of the server may be older."""
    deadline = time.monotonic() + 20
    while AuditSeal.objects.count() < count and time.monotonic() < deadline:
        reconcile.seal_audit()
    assert AuditSeal.objects.count() == count


def test_nothing_is_sealed_before_what_is_older_has_ended():
    with open_transaction("older"):
        record("younger")
        assert reconcile.seal_audit() == 0
    seal_until(2)
    assert order() == ["older", "younger"]
    assert faults() == []


def test_an_older_one_that_is_rolled_back_holds_nobody_up():
    with pytest.raises(RuntimeError), transaction.atomic():
        record_event("test.done", subject="never", audit=True)
        raise RuntimeError
    record("a")
    seal_until(1)
    assert order() == ["a"]


def test_many_are_sealed_in_batches(monkeypatch):
    monkeypatch.setattr(reconcile, "BATCH", 3)
    names = [f"n{number}" for number in range(8)]
    record(*names)
    seal_until(8)
    assert order() == names
    assert list(AuditSeal.objects.order_by("position").values_list("position", flat=True)) == [
        *range(1, 9)
    ]


def test_two_sealers_at_once_make_one_chain():
    record(*(f"n{number}" for number in range(20)))
    in_threads(4, lambda _: reconcile.seal_audit())
    seal_until(20)
    assert faults() == []


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("damaging", ["UPDATE {} SET {}", "DELETE FROM {}"])
def test_the_owner_may_not_change_a_row(table, damaging):
    record("a")
    seal_until(1)
    column = "action = 'x'" if table == TABLES[0] else "hash = 'x'"
    statement = damaging.format(table, column)
    with pytest.raises((ProgrammingError, InternalError), match="insert-only"):
        connection.cursor().execute(statement)
    assert faults() == []


@pytest.mark.parametrize("table", TABLES)
def test_the_owner_may_not_empty_a_table(table):
    record("a")
    with (
        pytest.raises((ProgrammingError, InternalError), match="insert-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        # The tests' own database lets tests empty tables; here as in production it may not.
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate")
        cursor.execute(f"TRUNCATE {table}")


CHANGES = [
    "UPDATE teams_auditevent SET facts = '{{}}' WHERE id = '{b}'",
    "UPDATE teams_auditevent SET actor_label = 'somebody' WHERE id = '{b}'",
    "UPDATE teams_auditevent SET at = at + interval '1 microsecond' WHERE id = '{b}'",
    "UPDATE teams_auditevent SET via = 'session' WHERE id = '{b}'",
    "UPDATE teams_auditseal SET hash = repeat('0', 64) WHERE event_id = '{b}'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_changed_record_is_found(statement):
    _, b, _ = record("a", "b", "c")
    seal_until(3)
    with damage() as cursor:
        cursor.execute(statement.format(b=b))
    assert "the event or its seal was changed" in faults()


def test_a_removed_record_is_found():
    _, b, _ = record("a", "b", "c")
    seal_until(3)
    with damage():
        AuditEvent.objects.filter(pk=b).delete()
    assert faults() == ["the event was removed"]


def test_a_record_that_is_removed_with_its_seal_is_found():
    _, b, _ = record("a", "b", "c")
    seal_until(3)
    with damage():
        AuditEvent.objects.filter(pk=b).delete()
        AuditSeal.objects.filter(event_id=b).delete()
    assert "a seal is missing here" in faults()
    with damage() as cursor:  # and also when the positions are closed up
        cursor.execute("UPDATE teams_auditseal SET position = 2 WHERE position = 3")
    assert "the seal before it was changed, removed or moved" in faults()


def test_two_records_that_change_places_are_found():
    a, b, _ = record("a", "b", "c")
    seal_until(3)
    with damage():
        for pk, event in ((1, "x"), (2, a), (1, b)):
            AuditSeal.objects.filter(position=pk).update(event_id=event)
    assert faults().count("the event or its seal was changed") == 2


def test_a_cut_tail_is_found_by_its_noted_head():
    _, _, c = record("a", "b", "c")
    seal_until(3)
    head = AuditSeal.objects.get(position=3).hash
    assert faults(head=head) == []
    with damage():
        AuditSeal.objects.filter(event_id=c).delete()
        AuditEvent.objects.filter(pk=c).delete()
    assert faults() == []
    assert faults(head=head) == ["the noted head is not in the chain"]


def test_an_old_record_without_a_seal_is_found():
    (a,) = record("a")
    assert faults() == []
    with damage():
        AuditEvent.objects.filter(pk=a).update(at=clock.now() - timedelta(minutes=11))
    assert faults() == ["an old event has no seal"]


def test_after_a_restore_records_are_sealed_though_their_transactions_are_of_another_database():
    a, b = record("a", "b")
    with damage():
        AuditEvent.objects.filter(pk__in=[a, b]).update(transaction=F("transaction") + 2**40)
    seal_until(2)
    record("c")
    seal_until(3)
    assert order() == ["a", "b", "c"]
    assert faults() == []


def test_the_command_says_what_it_finds():
    out, err = StringIO(), StringIO()
    call_command("verify_audit", stdout=out)
    assert out.getvalue().startswith("0 seals, no fault")
    a, _ = record("a", "b")
    seal_until(2)
    head = AuditSeal.objects.get(position=2).hash
    call_command("verify_audit", head=head, stdout=out)
    assert f"2 seals, no fault. Head: {head}" in out.getvalue()
    with damage():
        AuditEvent.objects.filter(pk=a).delete()
    with pytest.raises(CommandError, match="1 fault"):
        call_command("verify_audit", stdout=out, stderr=err)
    assert f"seal 1 event {a}: the event was removed" in err.getvalue()


@pytest.mark.kills
def test_a_sealer_that_is_killed_leaves_a_valid_chain():
    """Over 300 ms: starts sealers of their own and kills them at any instant."""
    program = (
        "import django; django.setup()\n"
        "from portal.teams import reconcile\n"
        "reconcile.BATCH = 2\n"
        "print('ready', flush=True)\n"
        "while True: reconcile.seal_audit()"
    )
    name = connection.settings_dict["NAME"]
    environ = {**os.environ, "DATABASE_URL": _with_name(os.environ["DATABASE_URL"], name)}
    for number in range(3):
        record(*(f"{number}-{n}" for n in range(40)))
        sealed = AuditSeal.objects.count()
        with subprocess.Popen(
            [sys.executable, "-c", program],
            env={**environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
        ) as sealer:
            assert sealer.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 20
            while AuditSeal.objects.count() < sealed + 5 and time.monotonic() < deadline:
                pass
            sealer.send_signal(signal.SIGKILL)
        assert AuditSeal.objects.count() >= sealed + 5
        assert [what for what in faults() if "old event" not in what] == []
    seal_until(120)
    assert faults() == []


def _with_name(url: str, name: str) -> str:
    return f"{url.rsplit('/', 1)[0]}/{name}"
