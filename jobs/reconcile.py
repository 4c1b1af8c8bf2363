"""Status of jobs: admission, the observer of a cluster, and the pass over one job.

A pass takes a turn, loads a frozen snapshot, lets `jobs.plan` decide, acts at most once outside,
and writes only if the turn is still its own.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from clusters import connect
from clusters import selectors as clusters
from clusters import services as cluster_services
from clusters.schedulers.contract import (
    Resources,
    Scheduler,
    Seen,
    SeesNodes,
    Settles,
    Signal,
    SubmitRequest,
)
from jobs import bootstrap, selectors, wakeups
from jobs import spec as specs
from jobs.admission import Verdict, wait_for_disk
from jobs.models import Job
from jobs.plan import Cancel, Go, Snapshot, Submit, Wait, plan
from jobs.services import attempts, jobs
from jobs.services.jobs import admission_of, tell
from jobs.spec import Spec
from jobs.states import Phase, Reason
from jobs.values import seen_from_json, seen_to_json
from portal.core import disk, push, turns
from portal.core.errors import Denied, OutsideError, Rejected, Unavailable
from portal.core.turns import Taken
from portal.teams.models import Team
from portal.teams.services.limits import lock_quota

log = logging.getLogger(__name__)
LOOK_EVERY = timedelta(seconds=2)
LOOK_AGAIN = timedelta(seconds=15)
NODES_EVERY = timedelta(minutes=1)
SETTLE_SECONDS = 1.0
PASSES = 50


@transaction.atomic
def admit_queue(team_id: str, *, is_sweep: bool = False) -> int:
    """Let in who fits of the team's line, and tell the others why they wait; returns how many.

    While all the places of running jobs are taken, only those who were told nothing yet are looked
    at, so that a long line costs a newcomer nothing; the sweep looks at everybody.
    """
    team = Team.objects.get(pk=team_id)
    limit = lock_quota(team)
    rows = selectors.line_of(team)
    if not is_sweep and limit.running_jobs is not None:
        live = selectors.live_of(team)[: limit.running_jobs]
        rows = rows.filter(reason="") if len(live) == limit.running_jobs else rows
    line = {job.pk: job for job in rows}
    if not line:
        return 0
    if disk.is_low():
        verdicts = [wait_for_disk(job_id) for job_id in line]
    else:
        verdicts = admission_of(team, limit, line.values(), now=_now())
    for verdict in verdicts:
        _write_verdict(line[verdict.id], verdict)
    return sum(verdict.is_admitted for verdict in verdicts)


def sweep() -> None:
    """Find all that a lost knock has left: lines, due jobs, clusters with jobs to look at."""
    for team_id in selectors.teams_in_line():
        admit_queue(team_id, is_sweep=True)
    turns.run_passes(Job.objects.all(), _pass, limit=PASSES)
    turns.run_passes(clusters.all_clusters(), _look, limit=PASSES)


def advance(job_id: str) -> None:
    """Make a pass over one job now, unless another worker has it."""
    turns.run_passes(Job.objects.filter(pk=job_id), _pass, limit=1)


def observe(cluster_id: str) -> None:
    """Look at one cluster's jobs now, unless another worker does."""
    turns.run_passes(clusters.all_clusters().filter(pk=cluster_id), _look, limit=1)


def _write_verdict(job: Job, verdict: Verdict) -> None:
    rows = Job.objects.filter(pk=job.pk, phase=Phase.QUEUED)
    if verdict.is_admitted:
        now = _now()
        changed = rows.update(
            phase=Phase.ADMITTED, reason="", message="", advice="", admitted_at=now, due_at=now
        )
        if changed:
            tell(job, kind="phase", phase=Phase.ADMITTED)
            wakeups.advance(job.pk)
            _hint(job)
    elif (job.reason, job.message) != (verdict.reason, verdict.message):
        rows.update(reason=verdict.reason, message=verdict.message, advice=verdict.advice)
        if job.reason != verdict.reason:
            tell(job, kind="waits", reason=verdict.reason or "", message=verdict.message)
        _hint(job)


def _look(taken: Taken) -> timedelta | None:
    """Ask the scheduler once about all live jobs of the cluster; write what changed."""
    cluster = clusters.cluster_by_id(taken.id)
    keys = {selectors.key_of(job): job for job in selectors.outside_on(cluster.pk)}
    try:
        scheduler = connect.scheduler_of(cluster)
        _look_at_nodes(cluster, scheduler)
        seen = _observe(scheduler, keys) if keys else {}
    except (Unavailable, Denied) as error:
        cluster_services.note_look(cluster, failed=error.message)
        return LOOK_AGAIN
    cluster_services.note_look(cluster)
    for key, job in keys.items():
        found = seen.get(key)
        raw = seen_to_json(found) if found else None
        if found is not None and (raw != job.seen or job.absent_since is not None):
            _note(job, seen=raw, absent_since=None)
        elif found is None and job.absent_since is None:
            _note(job, absent_since=_now())
    return LOOK_EVERY if keys else NODES_EVERY


def _look_at_nodes(cluster: Any, scheduler: Scheduler) -> None:
    """Ask which machines there are, now and then."""
    is_fresh = cluster.nodes_seen_at and cluster.nodes_seen_at > _now() - NODES_EVERY
    if isinstance(scheduler, SeesNodes) and not is_fresh:
        cluster_services.note_nodes(cluster, scheduler.nodes())


def _observe(scheduler: Scheduler, keys: Mapping[str, Job]) -> Mapping[str, Seen]:
    """Look once, after jobs whose agents have said goodbye had a moment to be gone."""
    if isinstance(scheduler, Settles) and (leaving := selectors.keys_with_exit(keys)):
        scheduler.settle(leaving, seconds=SETTLE_SECONDS)
    return scheduler.observe(list(keys))


def _note(job: Job, **columns: Any) -> None:
    """Write an observation and make the job due; the pass decides what it means."""
    Job.objects.filter(pk=job.pk, attempt=job.attempt).update(**columns, due_at=_now())
    wakeups.advance(job.pk)


def _pass(taken: Taken) -> timedelta | None:
    job = Job.objects.select_related("cluster", "team", "version__definition").get(pk=taken.id)
    step = plan(_snapshot(job))
    match step:
        case Wait():
            return step.due_in
        case Submit():
            return _submit(taken, job)
        case Cancel():
            return _cancel(taken, job, step)
        case Go():
            _go(taken, job, step)
            return timedelta(0) if not step.phase.is_final else None


def _submit(taken: Taken, job: Job) -> timedelta | None:
    """Make the job exist outside; a second time finds the first."""
    scheduler = connect.scheduler_of(job.cluster)
    token = attempts.token_of(job)
    try:
        external_id = scheduler.submit(_request(job, token=token))
    except Rejected as error:
        end = Go(phase=Phase.FAILED, reason=Reason.REJECTED, message=error.message, ended_at=_now())
        _go(taken, job, end)
        return None
    except OutsideError as error:
        turns.apply(taken, reason=Reason.CLUSTER_UNAVAILABLE, message=error.message[:500])
        raise
    go = Go(phase=Phase.SUBMITTED)
    _go(taken, job, go, external_id=external_id, submitted_at=_now(), seen=None)
    return timedelta(0)


def _cancel(taken: Taken, job: Job, step: Cancel) -> timedelta | None:
    scheduler: Scheduler = connect.scheduler_of(job.cluster)
    scheduler.cancel(selectors.key_of(job), step.signal)
    now = _now()
    is_first = step.signal is not None and step.signal is not Signal.KILL
    columns = {"signalled_at": now} if is_first else {"cancelled_at": now}
    turns.apply(taken, **columns)
    _look_soon(job)
    return timedelta(0)


def _go(taken: Taken, job: Job, step: Go, **more: Any) -> None:
    """Write the change, its line in the story and, at the end, what it frees; all or nothing."""
    columns: dict[str, Any] = {
        "phase": step.phase,
        "reason": step.reason or "",
        "message": step.message[:500],
        "advice": "",
        **more,
    }
    for name in ("started_at", "ended_at", "exit_code", "signal"):
        if getattr(step, name) is not None:
            columns[name] = getattr(step, name)
    if step.nodes:
        columns["node_names"] = list(step.nodes)
    if step.next_restart:
        columns |= {"restart": job.restart + 1, "started_at": None, "submitted_at": _now()}
    if step.next_attempt:
        columns |= _another_attempt(job)
    with transaction.atomic():
        if not turns.apply(taken, **columns):
            return
        if step.phase is Phase.SUBMITTED and not step.next_restart:
            attempts.forget_token(job)
        tell(
            job,
            kind="phase",
            phase=step.phase,
            reason=step.reason or "",
            message=step.message,
            attempt=columns.get("attempt"),
        )
        if step.phase.is_final or step.phase is Phase.QUEUED:
            wakeups.admit(job.team_id)
        if step.phase.is_final and selectors.is_mute(job):
            wakeups.pull_log(job.pk)
        if step.phase is Phase.SUBMITTED:
            _look_soon(job)
        _hint(job)


def _another_attempt(job: Job) -> dict[str, Any]:
    empty = ("admitted_at", "submitted_at", "started_at", "signalled_at", "cancelled_at")
    cleared: dict[str, Any] = dict.fromkeys((*empty, "seen", "absent_since"))
    return {**cleared, "attempt": job.attempt + 1, "queued_at": _now(), "external_id": ""}


def _look_soon(job: Job) -> None:
    cluster_services.look_soon(job.cluster_id)
    wakeups.observe(job.cluster_id)


def _hint(job: Job) -> None:
    push.hint(f"team.{job.team_id}", kind="job", job=job.pk)
    push.hint(f"log.{job.pk}", job=job.pk)


def _snapshot(job: Job) -> Snapshot:
    spec = specs.parse(job.version.spec)
    return Snapshot(
        now=_now(),
        phase=Phase(job.phase),
        attempt=job.attempt,
        max_attempts=spec.max_attempts,
        retry_on={Reason(name) for name in spec.retry_on},
        restart=job.restart,
        time_limit=timedelta(seconds=job.time_limit_seconds),
        max_pending=timedelta(seconds=job.cluster.max_pending_seconds),
        stop_reason=_stop_reason(job),
        checkpoint_signal=Signal(spec.checkpoint.signal) if spec.checkpoint.path else None,
        grace=timedelta(seconds=spec.checkpoint.grace_seconds),
        admitted_at=job.admitted_at,
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        seen=seen_from_json(job.seen) if job.seen else None,
        absent_since=job.absent_since,
        signalled_at=job.signalled_at,
        cancelled_at=job.cancelled_at,
    )


def _stop_reason(job: Job) -> Reason | None:
    """Return why the job is to stop: the wish, or what the portal itself wrote at STOPPING."""
    if job.stop_reason:
        return Reason(job.stop_reason)
    return Reason(job.reason) if job.phase == Phase.STOPPING and job.reason else None


def _request(job: Job, *, token: str) -> SubmitRequest:
    spec = specs.parse(job.version.spec)
    arguments = specs.argv_of(spec, job.parameters)
    agent = {
        "SLIPWAY_AGENT_URL": connect.portal_url_for(job.cluster),
        "SLIPWAY_AGENT_TOKEN": token,
        "SLIPWAY_AGENT_SECRETS": "1" if spec.secrets else "",
    }
    return SubmitRequest(
        key=selectors.key_of(job),
        name=job.name,
        owner=connect.owner_of(job.cluster, job.team),
        script=jobs.script_of(spec, job.parameters),
        environment={
            **specs.environment_of(job.parameters),
            **bootstrap.environment_of(arguments),
            **spec.env,
            **_own_variables(job, spec),
            **agent,
        },
        resources=Resources(**job.resources),
        time_limit_seconds=job.time_limit_seconds,
        placement=job.placement,
    )


def _own_variables(job: Job, spec: Spec) -> dict[str, str]:
    """Return what every job sees; see the contract's "What a job sees"."""
    seen = {
        "SLIPWAY_JOB_ID": job.pk,
        "SLIPWAY_ATTEMPT": str(job.attempt),
        "SLIPWAY_NODES": str(job.nodes),
        "SLIPWAY_NODE_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    if spec.checkpoint.path:
        is_shared = spec.checkpoint.path.startswith("/")
        path = f"{spec.checkpoint.path.rstrip('/')}/{job.pk}" if is_shared else spec.checkpoint.path
        seen["SLIPWAY_CHECKPOINT_DIR"] = path
    if resume := selectors.resume_path(job):
        seen["SLIPWAY_RESUME_FROM"] = resume
    return seen


def _now() -> datetime:
    """Return the database's clock, the only one for elapsed time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
