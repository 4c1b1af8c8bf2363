"""Filters of lists of jobs, shared by pages and REST."""

from collections.abc import Mapping

from django.db.models import QuerySet

from jobs.models import Job
from jobs.states import Phase
from portal.core.errors import FieldError, Invalid
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
        message = f"Choose of {', '.join(known)}, with commas between."
        raise Invalid("invalid", message, errors=[FieldError(pointer="/phase", message=message)])
    return names
