"""A job's samples as people ask for them: a span in buckets, what happened within it, means.

Series are named as the agent names them; where a job has more than one rank, `rank` is a label.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from clusters.samples import read
from clusters.samples.cells import Cell, floor
from clusters.samples.store import Sample
from jobs import filters, selectors
from jobs.logs.posts import MOST_RANK
from jobs.models import Job
from jobs.values import rank_of, subject_of
from portal.core import clock
from portal.core.errors import Invalid
from portal.teams.filters import instant

STEPS: Final = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
USUAL_POINTS: Final = 300
MOST_POINTS: Final = 1500
MEAN_STEP: Final = 30
MOST_STEP: Final = 366 * 86400
LATE_SECONDS: Final = 15
"""Without a sample for longer there is a gap, not a pause between two samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a query asks for."""

    begin: datetime
    end: datetime
    step: int
    rank: int | None
    names: tuple[str, ...]
    """Only series that begin so; empty: all."""


def span(job: Job, query: Mapping[str, str]) -> Span:
    """Read a query; without `from` and `to` it is the whole run. Raises `Invalid`."""
    end = _instant(query, "to") or job.ended_at or clock.now()
    begin = _instant(query, "from") or min(job.started_at or job.created_at, end)
    if begin > end:
        raise Invalid.at("from", "Give an instant before `to`.")
    seconds = (end - begin).total_seconds()
    step = filters.number(query, "step_seconds", default=None, least=1, most=MOST_STEP)
    if step is not None and seconds / step > MOST_POINTS:
        least = int(seconds // MOST_POINTS) + 1
        message = f"This gives more than {MOST_POINTS:,} points. Give {least:,} or more."
        raise Invalid.at("step_seconds", message)
    return Span(
        begin=begin,
        end=end,
        step=step or usual_step(seconds),
        rank=filters.number(query, "rank", default=None, least=0, most=MOST_RANK),
        names=tuple(filter(None, query.get("names", "").split(","))),
    )


def _instant(query: Mapping[str, str], name: str) -> datetime | None:
    found = instant(query, name)
    if found is not None and not 1970 <= found.year <= 2100:
        raise Invalid.at(name, "Give an instant of our time.")
    return found


def usual_step(seconds: float) -> int:
    """Return a round step that gives a few hundred points at most."""
    least = seconds / USUAL_POINTS
    return next((step for step in STEPS if step >= least), floor(least, STEPS[-1]) + STEPS[-1])


def between(job: Job, wanted: Span) -> dict[str, Any]:
    """Return the job's series in buckets, means of them, and what happened to the job meanwhile."""
    begin, end = wanted.begin.timestamp(), wanted.end.timestamp()
    source = read.source_of(begin=begin, step=wanted.step)
    found = read.buckets(subject_of(job.pk, wanted.rank), begin=begin, end=end, source=source)
    texts = {at: text(at) for at in range(floor(begin, source.step), int(end) + 1, source.step)}
    series = {
        named(job, rank_of(subject), name, asked=wanted.rank): points(cells, texts, source.step)
        for subject, all_of_it in found.items()
        if wanted.rank is None or rank_of(subject) == wanted.rank
        for name, cells in all_of_it.items()
        if not wanted.names or name.startswith(wanted.names)
    }
    return {
        "from": text(begin),
        "to": text(end),
        "step_seconds": source.step,
        "series": dict(sorted(series.items())),
        "events": events(job, wanted.begin, wanted.end),
    }


def points(cells: Mapping[int, Cell], texts: Mapping[int, str], step: int) -> list[list[Any]]:
    """Return `[at, mean]` of each bucket; null where there was no sample, but not between two."""
    found: list[list[Any]] = []
    last: int | None = None
    for at, name in texts.items():
        cell = cells.get(at)
        if cell is not None:
            found.append([name, cell[1] / cell[0]])
            last = at
        elif last is None or at + step - last > LATE_SECONDS:
            found.append([name, None])
    return found


def named(job: Job, rank: int, name: str, *, asked: int | None = None) -> str:
    """Return a series' name with its rank, where several ranks could be meant."""
    if asked is not None or (rank == 0 and job.nodes == 1):
        return name
    if name.endswith("}"):
        return f'{name[:-1]},rank="{rank}"}}'
    return f'{name}{{rank="{rank}"}}'


def frame(job: Job, sample: Sample) -> dict[str, Any]:
    """Return a sample as the socket says it."""
    rank = rank_of(sample.subject)
    series = {named(job, rank, name): value for name, value in sample.series.items()}
    return {"type": "sample", "at": text(sample.at), "rank": rank, "series": series}


def events(job: Job, begin: datetime, end: datetime) -> list[dict[str, Any]]:
    """Return changes of the job's phase and its checkpoints within a span, oldest first."""
    phases = [
        {"at": text(event.at.timestamp()), "kind": "phase", "name": event.phase}
        for event in selectors.phases_of(job, begin, end)
    ]
    checkpoints = [
        {
            "at": text(found.at.timestamp()),
            "kind": "checkpoint",
            "name": found.name,
            "seconds": found.seconds,
            "bytes": found.bytes,
            "rank": found.rank,
        }
        for found in selectors.checkpoints_of(job, begin, end)
    ]
    return sorted([*phases, *checkpoints], key=lambda event: str(event["at"]))


def mean_utilisation(job: Job) -> dict[str, float | None] | None:
    """Return the means over the whole run of `gpu` and `cpu`, or `None` without any sample."""
    if job.started_at is None:
        return None
    begin = job.started_at.timestamp()
    end = (job.ended_at or clock.now()).timestamp()
    source = read.source_of(begin=begin, step=MEAN_STEP)
    found = read.buckets(subject_of(job.pk), begin=begin, end=end, source=source)
    means = {
        kind: _mean(
            cell
            for series in found.values()
            for name, cells in series.items()
            if name.startswith(f"{kind}_utilization_ratio")
            for cell in cells.values()
        )
        for kind in ("gpu", "cpu")
    }
    return means if any(mean is not None for mean in means.values()) else None


def _mean(cells: Iterable[Cell]) -> float | None:
    count, total = 0, 0.0
    for number, more, _most in cells:
        count, total = count + number, total + more
    return round(total / count, 6) if count else None


def text(at: float) -> str:
    """Write an instant as REST does."""
    found = datetime.fromtimestamp(at, UTC)
    return found.isoformat(timespec="microseconds" if at % 1 else "seconds")[:-6] + "Z"
