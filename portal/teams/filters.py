"""Filters of lists, shared by pages and REST."""

from collections.abc import Mapping
from datetime import UTC, datetime

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from portal.core.errors import Invalid
from portal.teams.models import AuditEvent, User
from portal.teams.roles import SiteRole

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def users(rows: QuerySet[User], wanted: Mapping[str, str]) -> QuerySet[User]:
    """Keep the people that `q`, `site_role` and `is_active` name. Raises `Invalid`."""
    if text := wanted.get("q", "").strip():
        rows = rows.filter(Q(name__icontains=text) | Q(email__icontains=text))
    if role := wanted.get("site_role"):
        if role not in [str(r) for r in SiteRole]:
            raise Invalid.at("site_role", "Choose admin or auditor.")
        rows = rows.filter(site_role=role)
    if active := wanted.get("is_active"):
        if active.lower() not in _BOOLEANS:
            raise Invalid.at("is_active", "Say true or false.")
        rows = rows.filter(is_active=_BOOLEANS[active.lower()])
    return rows


def audit(rows: QuerySet[AuditEvent], wanted: Mapping[str, str]) -> QuerySet[AuditEvent]:
    """Keep the records that `q`, `team`, `action` and the instants name. Raises `Invalid`."""
    if text := wanted.get("q", "").strip():
        rows = rows.filter(
            Q(actor_label__icontains=text) | Q(action__icontains=text) | Q(subject__icontains=text)
        )
    if team := wanted.get("team", "").strip():
        rows = rows.filter(team_slug=team)
    if action := wanted.get("action", "").strip():
        exact = not action.endswith(".")
        rows = rows.filter(**{"action" if exact else "action__startswith": action})
    if (after := instant(wanted, "created_after")) is not None:
        rows = rows.filter(at__gte=after)
    if (before := instant(wanted, "created_before")) is not None:
        rows = rows.filter(at__lt=before)
    return rows


def instant(wanted: Mapping[str, str], name: str) -> datetime | None:
    """Return the instant of a filter, or `None` without one. Raises `Invalid`."""
    text = wanted.get(name, "").strip()
    if not text:
        return None
    try:
        found = parse_datetime(text.replace(" ", "+"))
        if found is not None:
            found = found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise Invalid.at(name, "Give an instant with its zone, such as 2026-11-30T14:00:00Z.")
    return found
