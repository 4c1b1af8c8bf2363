"""Jobs again: the same from the start, or from the last complete checkpoint, as a new job."""

from clusters import selectors as clusters
from jobs import selectors
from jobs.models import Job
from jobs.services.jobs import Wanted, submit
from jobs.states import Phase
from portal.core.errors import Conflict
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require


def retry(actor: Actor, job: Job) -> Job:
    """Submit the same job anew. Raises `Conflict` while it still lives."""
    _require_ended(actor, job)
    return submit(actor, _same(job, retry_of=job))


def resume(actor: Actor, job: Job) -> Job:
    """Submit the same job to go on from its last complete checkpoint, in `SLIPWAY_RESUME_FROM`.

    Raises `Conflict` while it still lives, and when no checkpoint of it was seen complete.
    """
    _require_ended(actor, job)
    if not selectors.resume_path(job):
        message = (
            "No complete checkpoint of this job was seen. A checkpoint is an entry of the folder"
            " that the definition names under checkpoint.path, put there by a rename."
        )
        raise Conflict("no_checkpoint", message)
    return submit(actor, _same(job, resumed_from=job))


def _require_ended(actor: Actor, job: Job) -> None:
    require(actor, Permission.JOBS_LAUNCH, team=job.team)
    if not Phase(job.phase).is_final:
        raise Conflict("not_ended", "The job has not ended. Stop it first, or wait.")


def _same(job: Job, *, retry_of: Job | None = None, resumed_from: Job | None = None) -> Wanted:
    return Wanted(
        version=job.version,
        team=job.team,
        cluster=clusters.facts_of(job.cluster),
        name=job.name,
        parameters=job.parameters,
        resources=job.resources,
        time_limit_seconds=job.time_limit_seconds,
        tags=job.tags,
        placement=job.placement,
        force_queue=True,  # it was taken once
        retry_of=retry_of,
        resumed_from=resumed_from,
    )
