"""Questions about jobs; each that a person asks starts from the actor."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, CharField, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Now, NullIf

from jobs import plan, telling
from jobs.models import Attempt, Checkpoint, DefinitionVersion, Job, JobDefinition, JobEvent
from jobs.states import Phase
from jobs.values import Usage
from portal.core.errors import NotFound
from portal.core.turns import Turn
from portal.teams import selectors as teams
from portal.teams.models import Team
from portal.teams.roles import Actor, Scope

SILENT_SECONDS = 60
MOST_CHECKPOINTS = 1000
RECENT = 50
MOST_MUTE = 100
_DEMAND = ("nodes", "gpus", "gpu_type")
_TURN = {field.name for field in Turn._meta.fields}
_LISTED = (
    *(f.name for f in Job._meta.concrete_fields if f.name not in {*_TURN, "seen"}),
    *("team__slug", "team__name", "owner__email", "owner__name"),
    *("cluster__slug", "cluster__name", "cluster__scheduler", "version__number"),
    *("version__definition__slug", "version__definition__name"),
)
_WORDS = ("reason", "message", "advice")


def usage_of(team: Team) -> Usage:
    """Return what the team's live jobs occupy; GPU-hours are counted once there are leases."""
    rows = live_of(team).values_list("nodes", "gpus", "gpu_type")
    by_type: Counter[str] = Counter()
    nodes = gpus = count = 0
    for job_nodes, job_gpus, kind in rows:
        nodes, gpus, count = nodes + job_nodes, gpus + job_gpus, count + 1
        if kind:
            by_type[kind] += job_gpus
    return Usage(gpus=gpus, nodes=nodes, running_jobs=count, gpus_by_type=dict(by_type))


def definitions_for(actor: Actor) -> QuerySet[JobDefinition]:
    """Return the definitions of the actor's teams and the built-in ones, newest first."""
    if not actor.has_scope(Scope.READ):
        return JobDefinition.objects.none()
    visible = Q(team__in=teams.teams_for(actor)) | Q(team=None)
    rows = JobDefinition.objects.select_related("team", "created_by")
    return rows.filter(visible, archived_at=None).order_by("-pk")


def definition_for(actor: Actor, definition_id: str) -> JobDefinition:
    """Return a definition; raise `NotFound` when it is not the actor's to see."""
    definition = definitions_for(actor).filter(pk=definition_id).first()
    if definition is None:
        raise NotFound("not_found", "There is no such definition, or it is not yours to see.")
    return definition


def versions_for(actor: Actor, definition: JobDefinition) -> QuerySet[DefinitionVersion]:
    """Return the versions of a definition that the actor may see, newest first."""
    return (
        DefinitionVersion.objects.select_related("created_by")
        .filter(definition__in=definitions_for(actor), definition=definition)
        .order_by("-pk")
    )


def newest_of(definition: JobDefinition) -> DefinitionVersion:
    """Return the newest version of a definition."""
    return definition.versions.get(number=definition.latest)


def with_newest(rows: QuerySet[JobDefinition]) -> QuerySet[JobDefinition]:
    """Add spec, instant and person of the newest version to each definition, in the same query."""
    return rows.filter(versions__number=F("latest")).annotate(
        spec=F("versions__spec"),
        saved_at=F("versions__created_at"),
        saved_by=Coalesce(
            NullIf("versions__created_by__name", Value("")),
            "versions__created_by__email",
            output_field=CharField(),
        ),
    )


def find_definitions(actor: Actor, text: str) -> QuerySet[JobDefinition]:
    """Return the actor's definitions by a part of name or slug."""
    return definitions_for(actor).filter(Q(name__icontains=text) | Q(slug__icontains=text))


def names_of_definitions(actor: Actor) -> QuerySet[JobDefinition, Any]:
    """Return slug and name of the actor's definitions, by slug; a slug of several teams once."""
    rows = definitions_for(actor).select_related(None).order_by("slug", "pk").distinct("slug")
    return rows.values("slug", "name")


def version_of(definition: JobDefinition, number: str) -> DefinitionVersion:
    """Return the version of that number, or the newest one without a number."""
    if not number:
        return newest_of(definition)
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    version = definition.versions.filter(number=wanted).first()
    if version is None:
        raise NotFound("not_found", f"There is no version {number[:20]} of this definition.")
    return version


def line_of(team: Team) -> QuerySet[Job]:
    """Return the team's jobs that wait to be admitted, with what admission reads of them."""
    rows = Job.objects.filter(team=team, phase=Phase.QUEUED, stop_reason="")
    return rows.only(*_DEMAND, "team_id", "priority", "queued_at", "attempt", *_WORDS)


def live_of(team: Team) -> QuerySet[Job]:
    """Return the team's jobs that occupy its quota."""
    rows = Job.objects.filter(team=team, phase__in=[str(p) for p in Phase if p.is_live])
    return rows.only(*_DEMAND)


def teams_in_line() -> list[str]:
    """Return the ids of teams with jobs that wait to be admitted."""
    rows = Job.objects.filter(phase=Phase.QUEUED, stop_reason="")
    return list(rows.values_list("team_id", flat=True).distinct())


def outside_on(cluster_id: str) -> QuerySet[Job]:
    """Return the cluster's jobs that its scheduler should know."""
    known = [Phase.SUBMITTED, Phase.RUNNING, Phase.STOPPING]
    return Job.objects.filter(cluster_id=cluster_id, phase__in=known)


def keys_with_exit(jobs: Mapping[str, Job]) -> list[str]:
    """Return the keys of the jobs whose agent has reported the end of the newest attempt."""
    ended = Attempt.objects.filter(job__in=jobs.values(), number=F("job__attempt"))
    ids = set(ended.exclude(exit__isnull=True).values_list("job_id", flat=True))
    return [key for key, job in jobs.items() if job.pk in ids]


def unfinished_local() -> QuerySet[Job]:
    """Return the jobs of this machine's own cluster that have not ended."""
    left = [str(phase) for phase in Phase if not phase.is_final]
    return Job.objects.select_related("team").filter(cluster__scheduler="local", phase__in=left)


def jobs_for(actor: Actor) -> QuerySet[Job]:
    """Return the jobs of the actor's teams, newest first, without what only one's page shows."""
    rows = Job.objects.select_related("team", "owner", "cluster", "version__definition")
    return rows.filter(team__in=teams.teams_for(actor)).only(*_LISTED).order_by("-pk")


def job_for(actor: Actor, job_id: str) -> Job:
    """Return a job; raise `NotFound` when it is not the actor's to see."""
    job = jobs_for(actor).defer(None).filter(pk=job_id).first()
    if job is None:
        raise NotFound("not_found", "There is no such job, or it is not yours to see.")
    return job


def last_launch(actor: Actor, definition: JobDefinition) -> Mapping[str, Any] | None:
    """Return id and instant of the actor's newest job of the definition, if there is one."""
    rows = Job.objects.filter(owner=actor.user_id, version__definition=definition)
    return rows.order_by("-pk").values("pk", "created_at").first()


def recent_definitions(actor: Actor) -> list[str]:
    """Return the ids of the definitions that the actor launched last, newest first."""
    rows = Job.objects.filter(owner=actor.user_id).order_by("-pk")
    return list(dict.fromkeys(rows.values_list("version__definition", flat=True)[:RECENT]))


def unfinished_for(actor: Actor, *, most: int) -> list[Job]:
    """Return the jobs that run or wait in the actor's teams, the actor's own first; one query."""
    going = jobs_for(actor).filter(phase__in=[str(p) for p in Phase if not p.is_final])
    is_own = Case(When(owner=actor.user_id, then=0), default=1)
    return list(going.order_by(is_own, "-pk")[:most])


def ended_for(actor: Actor) -> QuerySet[Job]:
    """Return the jobs of the actor's teams that have ended, newest first."""
    return jobs_for(actor).filter(phase__in=[str(p) for p in Phase if p.is_final])


def on_cluster(actor: Actor, cluster_id: str) -> QuerySet[Job]:
    """Return the jobs that the actor may see and that run or wait on a cluster, oldest first."""
    going = jobs_for(actor).filter(phase__in=[str(p) for p in Phase if not p.is_final])
    return going.filter(cluster=cluster_id).order_by("pk")


def jobs_among(actor: Actor, ids: Iterable[str]) -> QuerySet[Job]:
    """Return which of these jobs are the actor's to see; others are passed over."""
    return jobs_for(actor).filter(pk__in=list(ids))


def story_of(actor: Actor, job: Job) -> QuerySet[JobEvent]:
    """Return the job's story, oldest first."""
    return JobEvent.objects.filter(job=job_for(actor, job.pk)).order_by("pk")


def version_for(
    actor: Actor, team: Team, definition: str, *, number: int | None = None
) -> DefinitionVersion:
    """Return a version of the definition of that id, or slug in the team or built in.

    Raises `NotFound`. A team's own slug goes before a built-in one.
    """
    named = Q(definition=definition) | Q(definition__slug=definition)
    rows = DefinitionVersion.objects.filter(
        named, Q(definition__team=team) | Q(definition__team=None), definition__archived_at=None
    )
    wanted = rows.filter(number=number or F("definition__latest"))
    of_team_first = F("definition__team").asc(nulls_last=True)
    found = wanted.select_related("definition").order_by(of_team_first).first()
    if found is not None and actor.has_scope(Scope.READ):
        return found
    if number and rows.exists():
        raise NotFound("not_found", f"There is no version {number} of this definition.")
    raise NotFound("not_found", f"There is no definition {definition[:40]} for this team.")


def key_of(job: Job) -> str:
    """Return the key by which the scheduler knows the job's newest attempt."""
    return plan.key_of(job.pk, attempt=job.attempt)


def is_over(job: Job) -> bool:
    """Tell whether nothing happens to the job any more."""
    return Phase(job.phase).is_final


def is_log_complete(job_id: str) -> bool:
    """Tell whether no line will come any more: the job is over, and its agent has said so.

    An agent that was killed cannot say so; it is given a minute after the end.
    """
    job = (
        Job.objects.filter(pk=job_id).values("phase", "attempt", "submitted_at", "ended_at").first()
    )
    if job is None or not Phase(job["phase"]).is_final:
        return job is None
    if job["submitted_at"] is None:
        return True
    attempts = Attempt.objects.filter(job=job_id, number=job["attempt"])
    if attempts.exclude(exit__isnull=True).exists():
        return True
    late = Now() - timedelta(seconds=SILENT_SECONDS)
    return Job.objects.filter(pk=job_id, ended_at__lt=late).exists()


def resume_path(job: Job) -> str:
    """Return the path of the checkpoint to begin from; empty without one.

    It is the last complete one of an earlier attempt, else that of the job which this one resumes.
    """
    found = last_checkpoint(job) or (
        last_checkpoint(job.resumed_from) if job.resumed_from else None
    )
    return f"{found.folder}/{found.name}" if found else ""


def last_checkpoint(job: Job) -> Checkpoint | None:
    """Return the job's last complete checkpoint that says where it is."""
    return job.checkpoints.exclude(folder="").order_by("-at", "-id").first()


def has_agent(job: Job) -> bool:
    """Tell whether the agent of the newest attempt has been heard."""
    heard = job.attempts.filter(number=job.attempt, agent__isnull=False)
    return heard.exists()


def phases_of(job: Job, begin: datetime, end: datetime) -> QuerySet[JobEvent]:
    """Return the changes of a job's phase within a span, oldest first."""
    rows = JobEvent.objects.filter(job=job, at__gte=begin, at__lte=end)
    return rows.exclude(phase="").order_by("pk")


def checkpoints_of(
    job: Job, begin: datetime | None = None, end: datetime | None = None
) -> list[Checkpoint]:
    """Return the newest checkpoints of a job, within a span if there is one, oldest first."""
    rows = job.checkpoints.order_by("-at", "-id")
    if begin is not None:
        rows = rows.filter(at__gte=begin)
    if end is not None:
        rows = rows.filter(at__lte=end)
    return list(rows[:MOST_CHECKPOINTS])[::-1]


def report_of(job: Job) -> dict[str, Any]:
    """Return what a job came to, as REST shows it."""
    gpu_seconds = 0.0
    if job.started_at and job.ended_at:
        gpu_seconds = (job.ended_at - job.started_at).total_seconds() * job.gpus
    words = telling.ending(job.exit_code, job.signal) if Phase(job.phase).is_final else ""
    return {
        "cost": None,
        "gpu_hours": round(gpu_seconds / 3600, 6),
        "idle_money": None,
        "diagnosis": " ".join(filter(None, (job.message, words))),
        "attempts": job.attempts.order_by("number"),
        "checkpoints": job.checkpoints.order_by("-at", "-id")[:MOST_CHECKPOINTS],
    }


def is_mute(job: Job) -> bool:
    """Tell whether the newest attempt's agent has never spoken."""
    return job.attempts.filter(number=job.attempt, agent__isnull=True, exit__isnull=True).exists()


def mute_jobs() -> list[str]:
    """Return jobs that ended a while ago without a word of their agents."""
    late = Now() - timedelta(seconds=SILENT_SECONDS)
    rows = Attempt.objects.filter(agent__isnull=True, exit__isnull=True, number=F("job__attempt"))
    ended = rows.filter(job__ended_at__lt=late, job__log_cursor__archived_at=None)
    return list(ended.values_list("job_id", flat=True)[:MOST_MUTE])


def built_in(slug: str) -> JobDefinition | None:
    """Return the built-in definition of that slug, if the site has it."""
    return JobDefinition.objects.filter(team=None, slug=slug, archived_at=None).first()
