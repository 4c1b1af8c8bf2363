"""Filters of lists of jobs, shared by pages and REST."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from django.db.models import Q, QuerySet

from jobs.logs.posts import MOST_OFFSET, MOST_RANK, STREAMS
from jobs.models import Job
from jobs.states import Phase
from portal.core.errors import Invalid
from portal.teams.filters import instant

MOST_TAIL: Final = 100_000
LONGEST_CHARACTER: Final = 4
"""In bytes of UTF-8; a piece of a log is never shorter, so that whoever reads on comes on."""
LONGEST_NUMBER: Final = 20


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
        rows = rows.filter(Q(name__icontains=text) | Q(pk=text.upper()))
    return rows


def _phases(text: str) -> list[str]:
    known = [str(p) for p in Phase]
    names = [name.strip().upper() for name in text.split(",")]
    if any(name not in known for name in names):
        raise Invalid.at("phase", f"Choose of {', '.join(known)}, with commas between.")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Which part of a job's log is asked for; a negative offset counts from the end."""

    stream: str
    offset: int
    limit: int
    attempt: int | None = None
    rank: int | None = None
    tail: int | None = None
    """Only so many lines before the end."""


def piece(wanted: Mapping[str, str]) -> Piece:
    """Read which part of a log a query names. Raises `Invalid`."""
    stream = wanted.get("stream", "all")
    if stream not in ("all", *STREAMS):
        raise Invalid.at("stream", "Choose all, stdout or stderr.")
    return Piece(
        stream=stream,
        offset=number(wanted, "offset", default=0, least=-MOST_OFFSET, most=MOST_OFFSET),
        limit=max(
            LONGEST_CHARACTER, number(wanted, "limit", default=1 << 18, least=1, most=1 << 20)
        ),
        attempt=number(wanted, "attempt", default=None, least=1, most=MOST_RANK),
        rank=number(wanted, "rank", default=None, least=0, most=MOST_RANK),
        tail=number(wanted, "tail", default=None, least=1, most=MOST_TAIL),
    )


Default = TypeVar("Default", int, None)


def number(
    wanted: Mapping[str, str], name: str, *, default: Default, least: int, most: int
) -> int | Default:
    """Read a whole number. Raises `Invalid`."""
    text = wanted.get(name, "").strip()
    if not text:
        return default
    digits = text.removeprefix("-") if least < 0 else text
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER
    if not (is_number and least <= int(text) <= most):
        raise Invalid.at(name, f"Give a whole number from {least:,} to {most:,}.")
    return int(text)
