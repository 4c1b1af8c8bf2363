"""Jobs: submitting, stopping and running them again. Services write the wish and knock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from clusters import selectors as clusters
from clusters.schedulers.contract import Resources
from clusters.values import ClusterFacts
from jobs import bootstrap, selectors, wakeups
from jobs import spec as specs
from jobs.admission import Demand, Limits, Verdict, Waiting, admit, never_fits, refusal
from jobs.models import DefinitionVersion, Job, JobEvent
from jobs.spec import Spec
from jobs.states import Phase, Reason
from portal.core.errors import Conflict, FieldError, Invalid, NotAllowed, Refused
from portal.core.turns import make_due
from portal.teams import selectors as teams
from portal.teams.models import Limit, Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.names import check_name

MOST_TAGS: Final = 50
LONGEST_TAG: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asks for; everything else comes from the definition."""

    version: DefinitionVersion
    team: Team
    cluster: ClusterFacts
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    time_limit_seconds: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, str] = field(default_factory=dict)
    force_queue: bool = False
    """Queue it even if no node that was seen can hold it."""
    retry_of: Job | None = None
    resumed_from: Job | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a person asks for, with the definition's defaults filled in."""

    spec: Spec
    parameters: Mapping[str, Any]
    resources: Resources
    time_limit_seconds: int

    @property
    def demand(self) -> Demand:
        """What the job will occupy."""
        gpus = self.resources.nodes * self.resources.gpus_per_node
        return Demand(nodes=self.resources.nodes, gpus=gpus, gpu_type=self.resources.gpu_type)


@transaction.atomic
def submit(actor: Actor, wanted: Wanted) -> Job:
    """Put a job in line. It starts by itself when the team's limits and the cluster allow.

    Raises `Invalid` with a pointer to each wrong field, and `Refused` with what would fit.
    """
    checked = check(actor, wanted)
    refuse(actor, wanted, checked)
    spec, resources = checked.spec, checked.resources
    job = Job.objects.create(
        team=wanted.team,
        owner_id=actor.user_id,
        cluster_id=wanted.cluster.id,
        version=wanted.version,
        name=check_name(wanted.name, least=0) or wanted.version.definition.name,
        parameters=checked.parameters,
        resources=asdict(resources),
        nodes=resources.nodes,
        gpus=checked.demand.gpus,
        gpu_type=resources.gpu_type if resources.gpus_per_node else "",
        time_limit_seconds=checked.time_limit_seconds,
        priority=spec.priority,
        tags={**spec.tags, **wanted.tags},
        placement=dict(wanted.placement),
        retry_of=wanted.retry_of,
        resumed_from=wanted.resumed_from,
        due_at=None,
    )
    tell(job, kind="phase", phase=Phase.QUEUED, actor=actor)
    record_event(
        "job.submitted",
        subject=f"job:{job.pk}",
        actor=actor,
        team=job.team,
        facts={"name": job.name, "cluster": wanted.cluster.slug},
    )
    wakeups.admit(job.team_id)
    return job


@transaction.atomic
def stop(actor: Actor, job: Job) -> Job:
    """Wish the job to end: its checkpoint signal, its grace, then the scheduler's own way.

    Own jobs take a member, any job of the team a manager. Raises `Conflict` when it has ended.
    """
    _require_over(actor, job)
    rows = Job.objects.filter(pk=job.pk, stop_reason="").exclude(
        phase__in=[str(p) for p in Phase if p.is_final]
    )
    if not rows.update(stop_reason=Reason.USER, stopped_by_id=actor.user_id):
        job.refresh_from_db()
        if Phase(job.phase).is_final:
            raise Conflict("ended", f"The job has ended already: {job.phase.lower()}.")
        return job  # somebody has asked before
    make_due(Job.objects.filter(pk=job.pk))
    tell(job, kind="wish", reason=Reason.USER, message="Asked to stop.", actor=actor)
    record_event(
        "job.stopped",
        subject=f"job:{job.pk}",
        actor=actor,
        team=job.team,
        facts={"name": job.name},
    )
    wakeups.advance(job.pk)
    job.refresh_from_db()
    return job


@transaction.atomic
def stop_by_operator(job: Job) -> None:
    """Wish the job to end, as who runs the portal; nothing when it was wished before."""
    if Job.objects.filter(pk=job.pk, stop_reason="").update(stop_reason=Reason.USER):
        make_due(Job.objects.filter(pk=job.pk))
        tell(job, kind="wish", reason=Reason.USER, message="The operator stops all local jobs.")
        wakeups.advance(job.pk)


@transaction.atomic
def change(
    actor: Actor,
    job: Job,
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    priority: int | None = None,
) -> Job:
    """Change a job's name or tags, and its priority while it waits in line.

    Own jobs take a member, any job of the team a manager. Raises `Conflict` for the priority of a
    job that has left the line.
    """
    _require_over(actor, job)
    columns: dict[str, Any] = {}
    if name is not None:
        columns["name"] = check_name(name, least=0) or job.name
    if tags is not None:
        columns["tags"] = check_tags(tags)
    if priority is not None and priority != job.priority:
        columns["priority"] = priority
    rows = Job.objects.filter(pk=job.pk)
    if "priority" in columns:
        rows = rows.filter(phase=Phase.QUEUED)
    if columns and not rows.update(**columns):
        message = "It has left the line, so its priority decides nothing any more."
        raise Conflict.at("priority", message, code="not_queued")
    if "priority" in columns:
        tell(job, kind="wish", message=f"Priority set to {priority}.", actor=actor)
        wakeups.admit(job.team_id)
    job.refresh_from_db()
    return job


def stop_many(actor: Actor, jobs: Iterable[Job]) -> int:
    """Stop all of these that live and that the actor may stop; return how many were asked."""
    stopped = 0
    for job in jobs:
        try:
            stop(actor, job)
        except (Conflict, NotAllowed):
            continue
        stopped += 1
    return stopped


def _require_over(actor: Actor, job: Job) -> None:
    """Let members act on their own jobs, managers on any of the team."""
    is_own = job.owner_id == actor.user_id
    require(actor, Permission.JOBS_LAUNCH if is_own else Permission.JOBS_STOP_ANY, team=job.team)


def tell(
    job: Job,
    *,
    kind: str,
    phase: Phase | str = "",
    reason: Reason | str = "",
    message: str = "",
    actor: Actor | None = None,
    attempt: int | None = None,
) -> None:
    """Add a line to the job's story, in the caller's transaction."""
    JobEvent.objects.create(
        job=job,
        kind=kind,
        phase=phase,
        reason=reason,
        message=message[:500],
        actor_label=(actor.name or actor.email)[:254] if actor else "",
        attempt=attempt or job.attempt,
    )


def admission_of(
    team: Team, limit: Limit, line: Iterable[Job], *, now: datetime, beside: Sequence[Waiting] = ()
) -> list[Verdict]:
    """Decide about the team's line, and about what is not in it yet, by its limits."""
    waiting = [
        Waiting(id=job.pk, demand=_demand(job), priority=job.priority, queued_at=job.queued_at)
        for job in line
    ]
    limits = Limits(
        gpus=limit.gpus,
        nodes=limit.nodes,
        running_jobs=limit.running_jobs,
        gpus_by_type=limit.gpus_by_type,
    )
    live = [_demand(job) for job in selectors.live_of(team)]
    return admit([*waiting, *beside], limits=limits, live=live, now=now)


def script_of(spec: Spec, parameters: Mapping[str, Any]) -> str:
    """Return the exact script that a scheduler is given for a job."""
    return bootstrap.render(
        script=specs.script_of(spec) if spec.script else "",
        arguments=len(specs.argv_of(spec, parameters)),
        agent_sha256=clusters.agent_sha256(),
    )


def check(actor: Actor, wanted: Wanted) -> Checked:
    """Return what is asked for, completed. Raises `Invalid` with a pointer to each wrong field."""
    require(actor, Permission.JOBS_LAUNCH, team=wanted.team)
    spec = specs.parse(wanted.version.spec)
    values, faults = specs.bind(spec, wanted.parameters)
    faults += specs.check_resources(wanted.resources)
    limit = wanted.time_limit_seconds or spec.time_limit_seconds
    if limit > spec.time_limit_seconds:
        message = f"The definition allows up to {spec.time_limit_seconds} seconds."
        faults.append(FieldError(pointer="/time_limit_seconds", message=message))
    if faults:
        raise Invalid("invalid", "Some fields are not valid; nothing was started.", errors=faults)
    check_tags(wanted.tags)
    check_tags(wanted.placement, field="placement")
    return Checked(
        spec=spec,
        parameters=values,
        resources=specs.resources_of(spec, wanted.resources),
        time_limit_seconds=limit,
    )


def check_tags(tags: Mapping[str, str], *, field: str = "tags") -> dict[str, str]:
    """Return the tags. Raises `Invalid` for too many, and for names that are empty or long."""
    if len(tags) > MOST_TAGS:
        raise Invalid.at(field, f"Give at most {MOST_TAGS}.")
    for name in tags:
        if not 1 <= len(name) <= LONGEST_TAG or not name.isprintable():
            raise Invalid.at(field, f"A name has 1 to {LONGEST_TAG} characters, all visible.")
    return dict(tags)


def refuse(actor: Actor, wanted: Wanted, checked: Checked) -> None:
    """Raise `Refused` for what can never start as it is asked."""
    spec, cluster = checked.spec, wanted.cluster
    if not actor.can(Permission.SITE_EDIT) and not clusters.may_launch(cluster, wanted.team):
        message = (
            f"The team may not launch on {cluster.name}. "
            "A site admin can assign the cluster to it, on the cluster's page."
        )
        raise Refused("cluster_not_assigned", message)
    if spec.image and cluster.is_local:
        message = "The local cluster runs no containers. Leave the image out, or choose another."
        raise Refused("image_unsupported", message)
    if missing := ", ".join(teams.missing_secrets(wanted.team, spec.secrets.values())):
        message = f"The team has no secret {missing}. A manager can store it on the team's page."
        raise Refused("secret_missing", message)
    limit = Limit.objects.get(team=wanted.team)
    limits = Limits(gpus=limit.gpus, nodes=limit.nodes, gpus_by_type=limit.gpus_by_type)
    if found := refusal(checked.demand, limits=limits):
        message = f"{found.message} {found.fits}"
        raise Refused("exceeds_quota", message, limit=found.limit, fits=found.fits)
    why = never_fits(checked.resources, cluster.nodes)
    if why and not wanted.force_queue:
        message = f"{why} Ask for less, or queue it anyway (force_queue) if such nodes will come."
        raise Refused("never_fits", message)


def _demand(job: Job) -> Demand:
    return Demand(nodes=job.nodes, gpus=job.gpus, gpu_type=job.gpu_type)
