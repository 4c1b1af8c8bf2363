"""Wishes about notices: how a matter stands, who wants to hear of it, and once more, please."""

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from portal.core import clock, ids, push
from portal.core.crypto import Secret
from portal.core.errors import Conflict, Invalid, NotFound, SlipwayError
from portal.notices import senders, wakeups
from portal.notices.models import SIGNING_SECRETS, TARGETS, Delivery, Level, Route
from portal.notices.values import Kind, LevelName, State, concerns
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event

SECRET_BYTES: Final = 32
COLUMNS: Final = ("min_level", "quiet_from", "quiet_until", "is_enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A new route and, this once, the signing secret of a webhook."""

    row: Route
    signing_secret: Secret | None


@transaction.atomic
def set_level(
    key: str, level: LevelName, facts: Mapping[str, Any], *, team: Team | None = None
) -> bool:
    """Say how a matter stands; returns whether that is a change. For the rooms above.

    Expects the caller's transaction. The same level again changes the facts only, so it may be
    said on every pass. `facts["message"]` is one sentence for people, `facts["path"]` the page
    that shows more. Without a team it is the site's.
    """
    row, _ = Level.objects.get_or_create(team=team, key=key)
    while True:
        previous = LevelName(row.level)
        written: dict[str, Any] = {"facts": dict(facts), "updated_at": Now()}
        if previous is not level:
            written |= {"level": level, "since": Now(), "change": F("change") + 1}
        # Another transaction may have changed the level meanwhile: look again.
        if Level.objects.filter(pk=row.pk, level=previous).update(**written):
            break
        row.refresh_from_db()
    if previous is level:
        return False
    row.refresh_from_db()
    _open_deliveries(row, previous)
    record_event(
        "notice.changed",
        subject=f"level:{row.pk}",
        team=team,
        facts={"matter": key, "from": previous, "to": level, "message": _sentence(row)},
    )
    return True


def create_route(
    actor: Actor, *, team: Team | None, kind: str, name: str, target: str, **columns: Any
) -> Created:
    """Make a route of the team, or of the site; a webhook gets a signing secret, shown once.

    `columns` are `min_level`, `quiet_from`, `quiet_until`, `is_enabled`. Raises `Invalid`,
    `Refused` (the address) and `Conflict` (the name is taken).
    """
    _may_edit(actor, team)
    fields = _checked(columns)
    chosen = Kind(kind)
    label = _checked_target(chosen, target)
    row_id = ids.new()
    signing = None
    if chosen is Kind.WEBHOOK:
        signing = Secret("whsec_" + base64.b64encode(os.urandom(SECRET_BYTES)).decode())
    row = Route(
        pk=row_id,
        team=team,
        kind=chosen,
        name=_checked_name(name),
        target=TARGETS.seal(row_id, target),
        target_label=label,
        signing=SIGNING_SECRETS.seal(row_id, signing) if signing else None,
        created_by_id=actor.user_id,
        **fields,
    )
    with transaction.atomic():
        _save_new(row)
        _record(actor, row, "route.created")
    row.refresh_from_db()
    return Created(row=row, signing_secret=signing)


def update_route(actor: Actor, route: Route, **columns: Any) -> Route:
    """Change a route: `name`, `target` and the columns of `create_route`. Raises the same."""
    _may_edit(actor, route.team)
    wanted = _checked({k: v for k, v in columns.items() if k in COLUMNS}, before=route)
    if "name" in columns:
        wanted["name"] = _checked_name(columns["name"])
    if "target" in columns:
        wanted["target_label"] = _checked_target(Kind(route.kind), columns["target"])
        wanted["target"] = TARGETS.seal(route.pk, columns["target"])
    if wanted.get("is_enabled"):
        wanted["disabled_reason"] = ""
    try:
        with transaction.atomic():
            if not Route.objects.filter(pk=route.pk).update(**wanted, updated_at=Now()):
                raise _gone()
            _record(actor, route, "route.changed", changed=sorted(columns))
            route.refresh_from_db()
    except IntegrityError as error:
        raise _name_taken(wanted.get("name", route.name)) from error
    return route


@transaction.atomic
def delete_route(actor: Actor, route: Route) -> None:
    """Delete a route with its deliveries; what is on its way is dropped."""
    _may_edit(actor, route.team)
    _hold(route)  # before its deliveries, as everybody does
    Route.objects.filter(pk=route.pk).delete()
    Delivery.objects.filter(route_id=route.pk).delete()  # what was committed meanwhile
    _record(actor, route, "route.deleted")


@transaction.atomic
def test_route(actor: Actor, route: Route) -> Delivery:
    """Send a test along the route, now and whatever the hour. Raises `Conflict` if disabled."""
    _may_edit(actor, route.team)
    _hold(route)
    if not route.is_enabled:
        raise Conflict("route_disabled", "The route is disabled. Enable it, then test it.")
    message = f"This is a test of the route {route.name}, sent by {actor.email}."
    payload = {"type": "notice.test", "data": {"message": message, "route": route.name}}
    delivery = Delivery.objects.create(route=route, is_urgent=True, payload=_dated(payload))
    wakeups.deliver()
    return delivery


@transaction.atomic
def replay(actor: Actor, delivery: Delivery) -> Delivery:
    """Send a delivery once more under its old id; one that is pending is tried at once."""
    _may_edit(actor, delivery.route.team)
    _hold(delivery.route)
    if not delivery.route.is_enabled:
        raise Conflict("route_disabled", "The route is disabled. Enable it, then send again.")
    rows = Delivery.objects.filter(pk=delivery.pk)
    rows.exclude(state=State.PENDING).update(
        state=State.PENDING, attempts=0, last_error="", ended_at=None
    )
    rows.update(due_at=Now())
    _record(actor, delivery.route, "delivery.replayed", delivery=delivery.pk)
    wakeups.deliver()
    delivery.refresh_from_db()
    return delivery


def _hold(route: Route) -> None:
    """Hold the route until the end of the caller's transaction; raise `NotFound` if it is gone."""
    if not Route.objects.filter(pk=route.pk).update(kind=route.kind):
        raise _gone()


def _gone() -> NotFound:
    return NotFound("not_found", "There is no such route, or it is not yours to see.")


def _open_deliveries(row: Level, previous: LevelName) -> None:
    level = LevelName(row.level)
    routes = [
        route
        for route in Route.objects.filter(team=row.team, is_enabled=True).only("pk", "min_level")
        if concerns(LevelName(route.min_level), previous=previous, level=level)
    ]
    data = {
        "level": level,
        "previous": previous,
        "matter": row.key,
        "team": row.team.slug if row.team else None,
        "since": row.since.isoformat(),
        "message": _sentence(row),
        "url": settings.PUBLIC_URL + str(row.facts.get("path", "")),
        "facts": row.facts,
    }
    payload = _dated({"type": "notice.level_changed", "data": data})
    Delivery.objects.bulk_create(
        [
            Delivery(
                route=route,
                level=row,
                change=row.change,
                is_urgent=level is LevelName.BAD,
                payload=payload,
            )
            for route in routes
        ],
        ignore_conflicts=True,
    )
    if routes:
        wakeups.deliver()
    push.hint(f"team.{row.team_id}" if row.team_id else "site", kind="notice")


def _sentence(row: Level) -> str:
    return str(row.facts.get("message") or f"{row.key} is {row.level}.")


def _dated(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": payload["type"], "timestamp": clock.now().isoformat(), "data": payload["data"]}


def _may_edit(actor: Actor, team: Team | None) -> None:
    require(actor, Permission.NOTICES_EDIT if team else Permission.SITE_EDIT, team=team)


def _checked(columns: Mapping[str, Any], *, before: Route | None = None) -> dict[str, Any]:
    """Check the plain columns as they will stand after the change."""
    wanted = dict(columns)
    if "min_level" in wanted:
        wanted["min_level"] = LevelName(wanted["min_level"])
    start: time | None = wanted.get("quiet_from", before.quiet_from if before else None)
    end: time | None = wanted.get("quiet_until", before.quiet_until if before else None)
    if (start is None) != (end is None):
        raise Invalid.at("quiet_until", "Quiet hours need both a beginning and an end.")
    if start is not None and start == end:
        raise Invalid.at("quiet_until", "Quiet hours must end at another time than they begin.")
    return wanted


def _checked_name(name: str) -> str:
    clean = name.strip()
    if not 1 <= len(clean) <= 100 or not clean.isprintable():
        raise Invalid.at("name", "A name has 1 to 100 printable characters.")
    return clean


def _checked_target(kind: Kind, target: str) -> str:
    try:
        return senders.check_target(kind, target)
    except SlipwayError as error:
        raise type(error).at("target", error.message, code=error.code) from error


def _save_new(row: Route) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise _name_taken(row.name) from error


def _name_taken(name: str) -> Conflict:
    message = f"There is a route named {name} already. Choose another name."
    return Conflict.at("name", message, code="name_taken")


def _record(actor: Actor, route: Route, action: str, **facts: Any) -> None:
    record_event(
        action,
        subject=f"route:{route.pk}",
        actor=actor,
        team=route.team,
        facts={"name": route.name, "kind": route.kind, "target": route.target_label, **facts},
        audit=True,
    )
