"""The one next step of a job, from a frozen snapshot (pure).

Read it as the story of a job: is it over, is it to stop, is it to be submitted, what does the
scheduler say. Every step is either one act outside or one change of the row, never both, and the
intention is written before the act, so a crash between any two of them loses neither.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import assert_never

from clusters.schedulers.contract import Ending, Seen, Signal, Stage
from jobs.states import RETRYABLE, Phase, Reason, end_of

LOST_AFTER = timedelta(minutes=3)
STEADY = timedelta(minutes=5)
SOON = timedelta(seconds=2)
REASONS: dict[Ending, Reason] = {
    Ending.COMPLETED: Reason.COMPLETED,
    Ending.EXIT_CODE: Reason.EXIT_CODE,
    Ending.CANCELLED: Reason.USER,
    Ending.TIME_LIMIT: Reason.TIME_LIMIT,
    Ending.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    Ending.PREEMPTED: Reason.PREEMPTED,
    Ending.NODE_FAILURE: Reason.NODE_FAILURE,
    Ending.REJECTED: Reason.REJECTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A job as one pass sees it; instants are PostgreSQL's."""

    now: datetime
    phase: Phase
    attempt: int = 1
    max_attempts: int = 1
    retry_on: Collection[Reason] = ()
    restart: int = 0
    time_limit: timedelta
    max_pending: timedelta = timedelta(days=7)
    stop_reason: Reason | None = None
    """The wish to stop, and why."""
    checkpoint_signal: Signal | None = None
    grace: timedelta = timedelta(seconds=30)
    admitted_at: datetime | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    seen: Seen | None = None
    """The latest observation; `None` before the first."""
    absent_since: datetime | None = None
    """Since when the scheduler was asked and did not know the job."""
    signalled_at: datetime | None = None
    """When the checkpoint signal was delivered."""
    cancelled_at: datetime | None = None
    """When the scheduler was asked to end the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing to do until `due_in` has passed or something changes; `None`: never by itself."""

    due_in: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Make the job exist outside, after looking whether it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Ask the scheduler: with a signal to save itself first, without one to end it."""

    signal: Signal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Write another phase."""

    phase: Phase
    reason: Reason | None = None
    message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    next_attempt: bool = False
    next_restart: bool = False
    nodes: tuple[str, ...] = field(default=())


Step = Wait | Submit | Cancel | Go


def plan(job: Snapshot) -> Step:
    """Return the next step of the job."""
    match job.phase:
        case Phase.SUCCEEDED | Phase.FAILED | Phase.CANCELLED:
            return Wait(due_in=None)
        case Phase.QUEUED:
            return _queued(job)
        case Phase.ADMITTED:
            return _stop(job) or _waited(job, since=job.admitted_at) or Submit()
        case Phase.SUBMITTED:
            return _submitted(job)
        case Phase.RUNNING:
            return _running(job)
        case Phase.STOPPING:
            return _stopping(job)
    assert_never(job.phase)


def key_of(job_id: str, *, attempt: int) -> str:
    """Return the key by which the scheduler knows this attempt."""
    return f"{job_id}-{attempt}"


def _queued(job: Snapshot) -> Step:
    if job.stop_reason is not None:
        return Go(phase=end_of(job.stop_reason), reason=job.stop_reason, ended_at=job.now)
    return Wait(due_in=None)  # admission admits it, and then makes it due


def _submitted(job: Snapshot) -> Step:
    if step := _ended(job) or _stop(job) or _vanished(job):
        return step
    if job.seen is not None and job.seen.stage is Stage.RUNNING:
        return Go(
            phase=Phase.RUNNING,
            started_at=job.seen.started_at or job.now,
            nodes=tuple(job.seen.nodes),
        )
    if step := _waited(job, since=job.submitted_at):
        return step
    return Wait(due_in=STEADY)


def _running(job: Snapshot) -> Step:
    if step := _ended(job) or _stop(job) or _vanished(job):
        return step
    if job.seen is not None and job.seen.stage is Stage.PENDING:
        return Go(
            phase=Phase.SUBMITTED, next_restart=True, message="The scheduler put it back in line."
        )
    started = job.started_at or job.now
    left = started + job.time_limit - job.now
    if left <= timedelta(0):
        return Go(
            phase=Phase.STOPPING,
            reason=Reason.TIME_LIMIT,
            message=f"It ran for its limit of {_words(job.time_limit)}.",
        )
    return Wait(due_in=min(left, STEADY))


def _waited(job: Snapshot, *, since: datetime | None) -> Step | None:
    """Give up a job that has held its place in the quota for too long without a start."""
    if since is None or job.now - since <= job.max_pending:
        return None
    return Go(
        phase=Phase.STOPPING,
        reason=Reason.NO_CAPACITY,
        message=f"It waited longer than {_words(job.max_pending)} for a place.",
    )


def _stop(job: Snapshot) -> Step | None:
    """Stop a job, which may or may not exist outside: cancelling what is not there is fine."""
    if job.stop_reason is None:
        return None
    return Go(phase=Phase.STOPPING, reason=job.stop_reason)


def _stopping(job: Snapshot) -> Step:
    """Signal, wait for the grace, cancel, and wait until the scheduler says that it is gone."""
    reason = job.stop_reason or Reason.USER
    acted = job.signalled_at is not None or job.cancelled_at is not None
    if job.seen is not None and job.seen.stage is Stage.ENDED:
        if not acted:
            return _end_of(job, job.seen)
        return _stopped(job, reason)
    is_running = job.seen is not None and job.seen.stage is Stage.RUNNING
    if job.absent_since is not None and (job.cancelled_at is not None or not is_running):
        if job.cancelled_at is None:
            return Cancel(signal=None)
        if job.now - job.absent_since >= SOON:
            return _stopped(job, reason)
        return Wait(due_in=SOON)
    if is_running and job.checkpoint_signal is not None and job.signalled_at is None:
        return Cancel(signal=job.checkpoint_signal)
    if job.signalled_at is not None and job.cancelled_at is None:
        left = job.signalled_at + job.grace - job.now
        return Wait(due_in=left) if left > timedelta(0) else Cancel(signal=None)
    if job.cancelled_at is None:
        return Cancel(signal=None)
    if job.now - job.cancelled_at >= LOST_AFTER:
        return Cancel(signal=Signal.KILL)
    return Wait(due_in=LOST_AFTER)


def _stopped(job: Snapshot, reason: Reason) -> Go:
    """End by the reason that was written when the stop began; the exit code is kept."""
    seen = job.seen
    return Go(
        phase=end_of(reason),
        reason=reason,
        ended_at=(seen.ended_at if seen else None) or job.now,
        exit_code=seen.exit_code if seen else None,
        signal=seen.signal if seen else None,
    )


def _vanished(job: Snapshot) -> Step | None:
    """Declare a job lost that the scheduler has not known for long enough."""
    if job.absent_since is None:
        return None
    left = job.absent_since + LOST_AFTER - job.now
    if left > timedelta(0):
        return Wait(due_in=left)
    message = f"The scheduler has not known it for {_words(LOST_AFTER)}."
    return _retry_or(job, Go(phase=Phase.FAILED, reason=Reason.LOST, message=message))


def _ended(job: Snapshot) -> Step | None:
    if job.seen is None or job.seen.stage is not Stage.ENDED:
        return None
    return _end_of(job, job.seen)


def _end_of(job: Snapshot, seen: Seen) -> Go:
    """End as the scheduler says, or begin another attempt if the definition asks for it."""
    reason = REASONS[seen.ending or Ending.EXIT_CODE]
    end = Go(
        phase=end_of(reason),
        reason=reason,
        message=seen.message,
        started_at=seen.started_at,
        ended_at=seen.ended_at or job.now,
        exit_code=seen.exit_code,
        signal=seen.signal,
        nodes=tuple(seen.nodes),
    )
    return _retry_or(job, end)


def _retry_or(job: Snapshot, end: Go) -> Go:
    reason = end.reason
    may_retry = reason in RETRYABLE and reason in job.retry_on and job.attempt < job.max_attempts
    if not may_retry or job.stop_reason is not None:
        return end
    return Go(
        phase=Phase.QUEUED,
        next_attempt=True,
        message=f"Attempt {job.attempt} ended ({reason}); it is tried again.",
        exit_code=end.exit_code,
        signal=end.signal,
    )


def _words(span: timedelta) -> str:
    """Write a span of time as people say it: the two largest units."""
    left = int(span.total_seconds())
    parts = []
    for size, word in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {word}")
    return " ".join(parts[:2]) or "0 s"
