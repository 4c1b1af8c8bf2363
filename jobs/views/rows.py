"""Jobs as the rows of pages: what people read at a glance, and whether they may stop each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobs import telling
from jobs.states import Phase
from portal.core import clock
from portal.teams.roles import Actor, Permission

WAITS = (Phase.QUEUED, Phase.ADMITTED, Phase.SUBMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job in a list."""

    job: Any
    state: str
    """The word of its state; a wish to stop is seen at once."""
    why: str
    """Why it waits, or why it ended other than well; one sentence or empty."""
    advice: str
    resources: str
    spent: str
    """How long it has run, or ran."""
    seconds: int
    is_running: bool
    may_stop: bool

    @property
    def waits(self) -> bool:
        """The job has not started."""
        return self.job.phase in WAITS


def rows_of(actor: Actor, jobs: Iterable[Any]) -> list[Row]:
    """Return jobs as rows; asks no query."""
    now = clock.now()
    return [_row(actor, job, now=now) for job in jobs]


def _row(actor: Actor, job: Any, *, now: Any) -> Row:
    phase = Phase(job.phase)
    is_stopping = bool(job.stop_reason) and not phase.is_final
    seconds = 0
    if job.started_at is not None:
        seconds = max(0, int(((job.ended_at or now) - job.started_at).total_seconds()))
    return Row(
        job=job,
        state="stopping" if is_stopping else phase.lower(),
        why=_why(job, phase),
        advice=job.advice if phase in WAITS else "",
        resources=_resources(job),
        spent=telling.duration(seconds) if job.started_at else "",
        seconds=seconds,
        is_running=job.started_at is not None and not phase.is_final,
        may_stop=not phase.is_final and not is_stopping and _may_stop(actor, job),
    )


def _why(job: Any, phase: Phase) -> str:
    if phase is Phase.SUCCEEDED or phase is Phase.RUNNING:
        return ""
    if told := job.message or telling.because(job.reason):
        return str(told)
    if phase is Phase.SUBMITTED:
        return "Handed to the cluster; it starts when there is room."
    return telling.ending(job.exit_code, job.signal) if phase.is_final else ""


def _resources(job: Any) -> str:
    """Say what it asks for: `32 H100`, `4 CPUs`, `2 × 4 CPUs`."""
    if job.gpus:
        return f"{job.gpus} {job.gpu_type.upper() or ('GPU' if job.gpus == 1 else 'GPUs')}"
    cpus = job.resources.get("cpus_per_node", 1)
    words = f"{cpus} CPU" if cpus == 1 else f"{cpus} CPUs"
    return f"{job.nodes} × {words}" if job.nodes > 1 else words


def _may_stop(actor: Actor, job: Any) -> bool:
    is_own = job.owner_id == actor.user_id
    needed = Permission.JOBS_LAUNCH if is_own else Permission.JOBS_STOP_ANY
    return actor.can(needed, team_id=job.team_id)
