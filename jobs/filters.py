"""Filters of lists of jobs, shared by pages and REST."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from jobs.models import Job
from jobs.states import Phase
from portal.core.errors import Invalid, Refused
from portal.teams.filters import instant


def jobs(rows: QuerySet[Job], wanted: Mapping[str, str]) -> QuerySet[Job]:
    """Keep the jobs that the filters name. Raises `Invalid`."""
    for name, column in (
        ("team", "team__slug"),
        ("cluster", "cluster__slug"),
        ("owner", "owner__email"),
        ("definition", "version__definition__slug"),
    ):
        if text := wanted.get(name, "").strip():
            rows = rows.filter(**{column: text})
    if phases := wanted.get("phase", "").strip():
        rows = rows.filter(phase__in=_phases(phases))
    if tag := wanted.get("tag", "").strip():
        key, equals, value = tag.partition("=")
        rows = (
            rows.filter(tags__contains={key: value}) if equals else rows.filter(tags__has_key=key)
        )
    if (after := instant(wanted, "created_after")) is not None:
        rows = rows.filter(created_at__gte=after)
    if text := wanted.get("q", "").strip():
        rows = rows.filter(name__icontains=text)
    return rows


def _phases(text: str) -> list[str]:
    known = [str(p) for p in Phase]
    names = [name.strip().upper() for name in text.split(",")]
    if any(name not in known for name in names):
        raise Invalid.at("phase", f"Choose of {', '.join(known)}, with commas between.")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Which part of a job's output is asked for."""

    stream: str
    offset: int
    limit: int


def piece(wanted: Mapping[str, str]) -> Piece:
    """Read `stream`, `offset` and `limit` of a query. Raises `Invalid`, `Refused` for `all`."""
    stream = wanted.get("stream", "stdout")
    if stream == "all":
        message = "The merged log is not kept yet. Ask for stdout or stderr."
        raise Refused("unsupported", message)
    if stream not in ("stdout", "stderr"):
        raise Invalid.at("stream", "Choose stdout or stderr.")
    return Piece(
        stream=stream,
        offset=_number(wanted, "offset", default=0, least=0, most=1 << 50),
        limit=_number(wanted, "limit", default=1 << 18, least=1, most=1 << 20),
    )


def _number(wanted: Mapping[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = wanted.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text[:20]) <= most):
        raise Invalid.at(name, f"Give a whole number from {least:,} to {most:,}.")
    return int(text)
