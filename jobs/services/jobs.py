"""Jobs: submitting, stopping and running them again. Services write the wish and knock."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import transaction

from clusters import selectors as clusters
from clusters.schedulers.contract import Resources
from clusters.values import ClusterFacts
from jobs import bootstrap, wakeups
from jobs import spec as specs
from jobs.admission import Demand, Limits, refusal
from jobs.models import DefinitionVersion, Job, JobEvent
from jobs.spec import Spec
from jobs.states import Phase, Reason
from portal.core.errors import Conflict, FieldError, Invalid, Refused
from portal.core.turns import make_due
from portal.teams import selectors as teams
from portal.teams.models import Limit, Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event


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
    retry_of: Job | None = None


@transaction.atomic
def submit(actor: Actor, wanted: Wanted) -> Job:
    """Put a job in line. It starts by itself when the team's limits and the cluster allow.

    Raises `Invalid` with a pointer to each wrong field, and `Refused` with what would fit.
    """
    require(actor, Permission.JOBS_LAUNCH, team=wanted.team)
    spec = specs.parse(wanted.version.spec)
    values = _checked_parameters(spec, wanted)
    resources = resources_of(spec, wanted.resources)
    limit = _checked_limit(spec, wanted)
    _refuse(actor, spec, wanted, resources)
    job = Job.objects.create(
        team=wanted.team,
        owner_id=actor.user_id,
        cluster_id=wanted.cluster.id,
        version=wanted.version,
        name=" ".join(wanted.name.split())[:250] or wanted.version.definition.name,
        parameters=values,
        resources=asdict(resources),
        nodes=resources.nodes,
        gpus=resources.nodes * resources.gpus_per_node,
        gpu_type=resources.gpu_type if resources.gpus_per_node else "",
        time_limit_seconds=limit,
        priority=spec.priority,
        tags={**spec.tags, **wanted.tags},
        placement=dict(wanted.placement),
        retry_of=wanted.retry_of,
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
    is_own = job.owner_id == actor.user_id
    require(actor, Permission.JOBS_LAUNCH if is_own else Permission.JOBS_STOP_ANY, team=job.team)
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


def retry(actor: Actor, job: Job) -> Job:
    """Submit the same job anew. Raises `Conflict` while it still lives."""
    require(actor, Permission.JOBS_LAUNCH, team=job.team)
    if not Phase(job.phase).is_final:
        raise Conflict("not_ended", "The job has not ended. Stop it first, or wait.")
    return submit(
        actor,
        Wanted(
            version=job.version,
            team=job.team,
            cluster=clusters.facts_of(job.cluster),
            name=job.name,
            parameters=job.parameters,
            resources=job.resources,
            time_limit_seconds=job.time_limit_seconds,
            tags=job.tags,
            placement=job.placement,
            retry_of=job,
        ),
    )


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


def limits_of(limit: Limit) -> Limits:
    """Return the team's limits as admission reads them."""
    return Limits(
        gpus=limit.gpus,
        nodes=limit.nodes,
        running_jobs=limit.running_jobs,
        gpus_by_type=limit.gpus_by_type,
    )


def resources_of(spec: Spec, given: Mapping[str, Any]) -> Resources:
    """Return the definition's resources with what was given in their place."""
    return Resources(**{**spec.resources, **given})


def script_of(spec: Spec, parameters: Mapping[str, Any]) -> str:
    """Return the exact script that a scheduler is given for a job."""
    return bootstrap.render(
        script=specs.script_of(spec) if spec.script else "",
        arguments=len(specs.argv_of(spec, parameters)),
        agent_sha256=clusters.agent_sha256(),
    )


def _checked_parameters(spec: Spec, wanted: Wanted) -> dict[str, Any]:
    values, faults = specs.bind(spec, wanted.parameters)
    faults += specs.check_resources(wanted.resources)
    if faults:
        raise Invalid("invalid", "Some fields are not valid; nothing was started.", errors=faults)
    return values


def _checked_limit(spec: Spec, wanted: Wanted) -> int:
    limit = wanted.time_limit_seconds or spec.time_limit_seconds
    if limit > spec.time_limit_seconds:
        message = f"The definition allows up to {spec.time_limit_seconds} seconds."
        error = FieldError(pointer="/time_limit_seconds", message=message)
        raise Invalid("invalid", message, errors=[error])
    return limit


def _refuse(actor: Actor, spec: Spec, wanted: Wanted, resources: Resources) -> None:
    """Raise `Refused` for what can never start as it is asked."""
    is_free = actor.can(Permission.SITE_EDIT)
    if not is_free and not clusters.may_launch(wanted.cluster.id, wanted.team):
        message = (
            f"The team may not launch on {wanted.cluster.name}. "
            "A site admin can assign the cluster to it, on the cluster's page."
        )
        raise Refused("cluster_not_assigned", message)
    if spec.image and wanted.cluster.is_local:
        message = "The local cluster runs no containers. Leave the image out, or choose another."
        raise Refused("image_unsupported", message)
    missing = teams.missing_secrets(wanted.team, spec.secrets.values())
    if missing:
        names = ", ".join(missing)
        message = f"The team has no secret {names}. A manager can store it on the team's page."
        raise Refused("secret_missing", message)
    demand = Demand(
        nodes=resources.nodes,
        gpus=resources.nodes * resources.gpus_per_node,
        gpu_type=resources.gpu_type,
    )
    found = refusal(demand, limits=limits_of(Limit.objects.get(team=wanted.team)))
    if found is not None:
        raise Refused(
            "exceeds_quota", f"{found.message} {found.fits}", limit=found.limit, fits=found.fits
        )
