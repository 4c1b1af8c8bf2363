"""Brings deliveries to their receivers: the only writer of their status."""

import json
import random
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from portal.core import clock, turns
from portal.core.crypto import CannotDecrypt
from portal.notices import senders, timing, wakeups
from portal.notices.models import SIGNING_SECRETS, TARGETS, Delivery, Route
from portal.notices.values import Failed, Kind, Message, Outcome, Sent, State
from portal.teams.services.events import record_event

LIMIT: Final = 8  # each may take senders.SEND_SECONDS; the task has 120 s
DELIVERED_DAYS: Final = 30
DEAD_DAYS: Final = 90


def deliver() -> int:
    """Try the deliveries that are due; returns how many. Knocks again when there may be more."""
    done = turns.run_passes(Delivery.objects.filter(state=State.PENDING), _pass, limit=LIMIT)
    if done == LIMIT:
        wakeups.deliver()
    return done


def prune() -> int:
    """Delete what was delivered 30 days or given up 90 days ago; returns how many."""
    old = Q(state=State.DELIVERED, ended_at__lt=Now() - timedelta(days=DELIVERED_DAYS))
    older = Q(state=State.DEAD, ended_at__lt=Now() - timedelta(days=DEAD_DAYS))
    return Delivery.objects.filter(old | older).delete()[0]


def _pass(taken: turns.Taken) -> timedelta | None:
    delivery = Delivery.objects.select_related("route", "route__team").get(pk=taken.id)
    route = delivery.route
    if not route.is_enabled:
        return _end(taken, State.DEAD, error="The route is disabled.")
    quiet_until = None if delivery.is_urgent else _quiet_until(route, clock.now())
    if quiet_until is not None:
        return quiet_until - clock.now()
    # Counted before the act: a worker that dies while sending has used up an attempt.
    if not turns.apply(taken, attempts=delivery.attempts + 1):
        return None
    return _conclude(taken, delivery, _send(delivery))


def _send(delivery: Delivery) -> Outcome:
    route = delivery.route
    try:
        target = TARGETS.open(route)
        signing = SIGNING_SECRETS.open(route) if route.signing else None
    except CannotDecrypt as error:
        return Failed(error=error.message)
    return senders.send(Kind(route.kind), target, _message(delivery), signing=signing)


def _conclude(taken: turns.Taken, delivery: Delivery, outcome: Outcome) -> timedelta | None:
    match outcome:
        case Sent():
            return _end(taken, State.DELIVERED)
        case Failed(is_gone=True):
            _close_route(delivery.route)
            return _end(taken, State.DEAD, error=outcome.error)
        case Failed():
            wait = timing.delay_after(
                delivery.attempts + 1,
                jitter=random.random(),  # noqa: S311 - spreads load
                retry_after_seconds=outcome.retry_after_seconds,
            )
            if wait is None:
                return _end(taken, State.DEAD, error=outcome.error)
            turns.apply(taken, last_error=outcome.error)
            return wait


def _end(taken: turns.Taken, state: State, *, error: str = "") -> timedelta | None:
    turns.apply(taken, state=state, last_error=error, ended_at=Now())
    return None


@transaction.atomic
def _close_route(route: Route) -> None:
    reason = "The receiver answered that it is gone (410)."
    open_routes = Route.objects.filter(pk=route.pk, is_enabled=True)
    if open_routes.update(is_enabled=False, disabled_reason=reason):
        record_event(
            "route.disabled",
            subject=f"route:{route.pk}",
            team=route.team,
            facts={"name": route.name, "reason": reason},
            audit=True,
        )


def _quiet_until(route: Route, now: datetime) -> datetime | None:
    if route.quiet_from is None or route.quiet_until is None:
        return None
    zone = ZoneInfo(route.team.time_zone if route.team else "UTC")
    return timing.quiet_ends_at(now, zone=zone, start=route.quiet_from, end=route.quiet_until)


def _message(delivery: Delivery) -> Message:
    data = delivery.payload["data"]
    level = data.get("level", "test")
    sentence = " ".join(str(data["message"]).split())
    lines = [f"{level}: {sentence}"]
    if data.get("team"):
        lines.append(f"Team: {data['team']}")
    if data.get("url"):
        lines.append(str(data["url"]))
    return Message(
        id=delivery.pk,
        subject=f"{level}: {sentence}"[:200],
        text="\n".join(lines),
        body=json.dumps(delivery.payload, separators=(",", ":")).encode(),
    )
