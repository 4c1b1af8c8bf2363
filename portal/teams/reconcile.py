"""The sealer of the audit log, and what ends by itself."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

from portal.core import clock
from portal.teams.models import AuditEvent, AuditSeal, IdempotencyRecord

BATCH = 500
VERIFIED_AT_ONCE = 1000
LONGEST_TRANSACTION = timedelta(days=1)
GENESIS = "0" * 64


def hash_of(event: AuditEvent, *, position: int, previous: str) -> str:
    """Return the SHA-256 of one link: the previous hash, the place and every column, as JSON."""
    columns = [
        previous,
        position,
        event.pk,
        event.at.isoformat(timespec="microseconds"),
        event.actor_id,
        event.actor_label,
        event.via,
        event.action,
        event.team_slug,
        event.subject,
        event.facts,
    ]
    text = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def seal_audit() -> int:
    """Seal every event that no running transaction can still precede; return how many.

    One sealer at a time (an advisory lock; a second one leaves at once). An event is ripe when its
    transaction is older than every running one. After a restore into another database its number
    can be *above* all of that database's: a row that is visible is committed, so that is ripe too.
    """
    sealed = 0
    while True:
        with transaction.atomic():
            if not _take_turn():
                return sealed
            batch = _ripe()
            _append(batch)
        sealed += len(batch)
        if len(batch) < BATCH:
            return sealed


def _take_turn() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('slipway.seal_audit'))")
        return bool(cursor.fetchone()[0])


def _ripe() -> list[AuditEvent]:
    seal = AuditSeal.objects.filter(event_id=OuterRef("pk"))
    oldest = RawSQL("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", [])
    next_one = RawSQL("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", [])
    ripe = Q(transaction__lt=oldest) | Q(transaction__gte=next_one)
    events = AuditEvent.objects.filter(ripe).exclude(Exists(seal))
    last = AuditSeal.objects.order_by("-position").first()
    newest = AuditEvent.objects.filter(pk=last.event_id).first() if last else None
    if newest is not None:  # no transaction lives for a day, so what is older is sealed
        events = events.filter(at__gt=newest.at - LONGEST_TRANSACTION)
    return list(events.order_by("transaction", "pk")[:BATCH])


def _append(events: list[AuditEvent]) -> None:
    last = AuditSeal.objects.order_by("-position").first()
    position, previous = (last.position, last.hash) if last else (0, GENESIS)
    seals = []
    for event in events:
        position += 1
        link = hash_of(event, position=position, previous=previous)
        seals.append(
            AuditSeal(position=position, event_id=event.pk, previous_hash=previous, hash=link)
        )
        previous = link
    AuditSeal.objects.bulk_create(seals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One place where the audit log is not what was sealed."""

    position: int
    event_id: str
    what: str


def verify_audit(*, head: str | None = None) -> Iterator[Fault]:
    """Walk the chain and yield every fault: changed, removed, reordered or unsealed too long.

    `head` is a hash that was noted earlier; a chain that no longer holds it was cut short.
    """
    position, previous, seen_head = 0, GENESIS, head is None
    for seal, event in _sealed():
        position += 1
        if seal.position != position:
            yield Fault(position=position, event_id="", what="a seal is missing here")
            position = seal.position
        if seal.previous_hash != previous:
            what = "the seal before it was changed, removed or moved"
            yield Fault(position=position, event_id=seal.event_id, what=what)
        yield from _fault_of(seal, event)
        previous = seal.hash
        seen_head = seen_head or seal.hash == head
    if not seen_head:
        yield Fault(position=position, event_id="", what="the noted head is not in the chain")
    yield from _unsealed()


def _sealed() -> Iterator[tuple[AuditSeal, AuditEvent | None]]:
    """Yield each seal in order with its event; two queries for a thousand of them."""
    reached = 0
    while True:
        rows = AuditSeal.objects.filter(position__gt=reached).order_by("position")
        seals = list(rows[:VERIFIED_AT_ONCE])
        if not seals:
            return
        events = AuditEvent.objects.in_bulk([seal.event_id for seal in seals])
        for seal in seals:
            yield seal, events.get(seal.event_id)
        reached = seals[-1].position


def _fault_of(seal: AuditSeal, event: AuditEvent | None) -> Iterator[Fault]:
    if event is None:
        what = "the event was removed"
    elif hash_of(event, position=seal.position, previous=seal.previous_hash) != seal.hash:
        what = "the event or its seal was changed"
    else:
        return
    yield Fault(position=seal.position, event_id=seal.event_id, what=what)


def _unsealed() -> Iterator[Fault]:
    """Yield events older than ten minutes without a seal: the sealer stands, or a seal was cut."""
    seal = AuditSeal.objects.filter(event_id=OuterRef("pk"))
    old = AuditEvent.objects.filter(at__lt=clock.now() - timedelta(minutes=10))
    for event in old.exclude(Exists(seal)).order_by("pk")[:100]:
        yield Fault(position=0, event_id=event.pk, what="an old event has no seal")


def expire() -> None:
    """Delete what has ended by itself: browser sessions, and after 24 h answers kept by key."""
    now = clock.now()
    IdempotencyRecord.objects.filter(created_at__lt=now - timedelta(hours=24)).delete()
    ended = list(Session.objects.filter(expire_date__lt=now).values_list("pk", flat=True)[:5000])
    UserSession.objects.filter(session_key__in=ended).delete()
    Session.objects.filter(pk__in=ended, expire_date__lt=now).delete()
