"""Filters of lists, shared by pages and REST."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from portal.core.errors import Invalid
from portal.notices.models import Level
from portal.notices.values import LevelName, State


def levels(rows: QuerySet[Level], wanted: Mapping[str, str]) -> QuerySet[Level]:
    """Keep the levels that `team` and `level` name. Raises `Invalid`."""
    rows = of_team(rows, wanted)
    if level := wanted.get("level", "").strip():
        if level not in [str(v) for v in LevelName]:
            raise Invalid.at("level", "Choose ok, info, warn or bad.")
        rows = rows.filter(level=level)
    return rows


def deliveries(rows: QuerySet[Any], wanted: Mapping[str, str]) -> QuerySet[Any]:
    """Keep the deliveries in the `state`. Raises `Invalid`."""
    if state := wanted.get("state", "").strip():
        if state not in [str(v) for v in State]:
            raise Invalid.at("state", "Choose pending, delivered or dead.")
        rows = rows.filter(state=state)
    return rows


def of_team(rows: QuerySet[Any], wanted: Mapping[str, str]) -> QuerySet[Any]:
    """Keep the rows of the `team` with that slug."""
    team = wanted.get("team", "").strip()
    return rows.filter(team__slug=team) if team else rows
