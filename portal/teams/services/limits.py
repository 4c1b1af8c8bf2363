"""Quotas: what a team may use at once or a month."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from portal.core.errors import FieldError, Invalid, NotAllowed
from portal.teams.models import Limit, Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event

COUNTS = ("gpus", "nodes", "running_jobs")
MOST = 1_000_000


def lock_quota(team: Team) -> Limit:
    """Lock the team's limits until the end of the caller's transaction, and return them.

    First in the lock order quota → budget period → pool → job.
    """
    return Limit.objects.select_for_update(no_key=True, of=("self",)).get(team=team)


@transaction.atomic
def set_limits(actor: Actor, team: Team, *, wanted: Mapping[str, Any]) -> Limit:
    """Set the limits that `wanted` names; `None` lifts one, what is absent stays.

    Keys: gpus, nodes, running_jobs (counts), gpus_by_type (GPU type → count or `None`),
    gpu_hours_per_month (decimal). A manager may lower, an admin also raise. Raises `Invalid` and
    `NotAllowed`, which names the fields that would have been raised.
    """
    columns = _checked(wanted)
    limit = lock_quota(team)
    raised = [key for key, value in columns.items() if _is_raise(getattr(limit, key), value)]
    require(actor, Permission.LIMITS_LOWER, team=team)
    if raised and not actor.can(Permission.LIMITS_RAISE, team_id=team.pk):
        raise NotAllowed(
            "raise_needs_admin",
            f"A manager may lower limits; raising {', '.join(raised)} takes a site admin.",
            fields=raised,
        )
    changed = {key: value for key, value in columns.items() if value != getattr(limit, key)}
    if changed:
        Limit.objects.filter(pk=limit.pk).update(**changed, updated_at=Now())
        record_event(
            "quota.changed",
            subject=f"team:{team.pk}",
            actor=actor,
            team=team,
            facts={
                key: {"was": _plain(getattr(limit, key)), "is": _plain(value)}
                for key, value in changed.items()
            },
            audit=True,
        )
        limit.refresh_from_db()
    return limit


def _checked(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the wanted limits; raise `Invalid` with one error a field."""
    columns: dict[str, Any] = {}
    errors: list[FieldError] = []
    for key, value in wanted.items():
        try:
            columns[key] = _parse(key, value)
        except ValueError as error:
            errors.append(FieldError(pointer=f"/{key}", message=str(error)))
    if errors:
        raise Invalid("invalid", "Some limits are not valid; nothing was changed.", errors=errors)
    return columns


def _parse(key: str, value: Any) -> Any:
    if key == "gpus_by_type":
        if not isinstance(value, dict) or len(value) > 50:
            raise ValueError('Give an object such as {"h100": 8}.')
        types = {str(name).strip().lower(): _count(n) for name, n in value.items()}
        if any(not name or len(name) > 50 or not name.isprintable() for name in types):
            raise ValueError("A GPU type has 1 to 50 printable characters, such as h100.")
        return {name: n for name, n in types.items() if n is not None}
    if key in COUNTS:
        return _count(value)
    if key == "gpu_hours_per_month":
        return _hours(value)
    raise ValueError("There is no such limit.")


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"Give a whole number from 0 to {MOST:,}, or nothing for no limit.")
    return value


def _hours(value: Any) -> Decimal | None:
    if value is None:
        return None
    message = "Give hours from 0 to 1,000,000,000 with up to 4 decimals, or nothing for no limit."
    try:
        hours = Decimal(str(value))
    except InvalidOperation as error:
        raise ValueError(message) from error
    if not hours.is_finite() or not 0 <= hours <= 10**9 or hours != round(hours, 4):
        raise ValueError(message)
    return hours


def _is_raise(was: Any, value: Any) -> bool:
    """Tell whether the new limit allows anything that the old one did not."""
    if isinstance(was, dict):
        return any(_is_raise(was.get(name), value.get(name)) for name in {*was, *value})
    if was is None:
        return False
    return value is None or value > was


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value
