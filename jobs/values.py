"""Values of jobs that cross rooms (pure)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from clusters.schedulers.contract import Ending, Seen, Stage

_INSTANTS = ("submitted_at", "started_at", "ended_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a team's jobs occupy now, and the GPU-hours of the month in the team's zone."""

    gpus: int = 0
    nodes: int = 0
    running_jobs: int = 0
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    gpu_hours_per_month: Decimal = Decimal(0)


def subject_of(job_id: str, rank: int | None = None) -> str:
    """Return how samples of a job's rank are named; without a rank, what all of them begin with."""
    return f"job:{job_id}/{'' if rank is None else rank}"


def rank_of(subject: str) -> int:
    """Return the rank that `subject_of` was given."""
    return int(subject.rpartition("/")[2])


def seen_to_json(seen: Seen) -> dict[str, Any]:
    """Return an observation as JSON keeps it; equal observations give equal JSON."""
    raw = asdict(seen)
    for name in _INSTANTS:
        raw[name] = raw[name].isoformat() if raw[name] else None
    return {**raw, "nodes": list(seen.nodes)}


def seen_from_json(raw: Mapping[str, Any]) -> Seen:
    """Return the observation that `seen_to_json` was given."""
    values = dict(raw)
    for name in _INSTANTS:
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    ending = Ending(values["ending"]) if values["ending"] else None
    stage, nodes = Stage(values["stage"]), tuple(values["nodes"])
    return Seen(**{**values, "stage": stage, "ending": ending, "nodes": nodes})
