"""Pages of one job: its log, its story, and what exactly it runs."""

import shlex
from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs import selectors, telling
from jobs import spec as specs
from jobs.quoting import variable_of
from jobs.states import Phase
from jobs.telling import Happening, Saved
from portal.core import clock
from portal.teams.middleware import actor_of
from portal.teams.roles import Actor, Permission

MOST_LINES = 500


@login_required
@require_safe
def log(request: HttpRequest, job: str) -> HttpResponse:
    """Show what a job writes, as it writes it."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    return render(request, "jobs/job.html", {**head_of(actor, row), "tab": "log"})


@login_required
@require_safe
def story(request: HttpRequest, job: str) -> HttpResponse:
    """Show what happened to a job, and where its time went."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    events = [_happening(event) for event in selectors.story_of(actor, row)]
    head = head_of(actor, row)
    context = {
        **head,
        "tab": "story",
        "story": telling.merged(
            telling.story(events, ending=head["ending"]),
            telling.saved([_saved(found) for found in selectors.checkpoints_of(row)]),
        )[:MOST_LINES],
        "spans": telling.spans(events, now=clock.now()),
    }
    return render(request, "jobs/job_story.html", context)


@login_required
@require_safe
def script(request: HttpRequest, job: str) -> HttpResponse:
    """Show what exactly a job runs: script, parameters, names in its environment."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    spec = specs.parse(row.version.spec)
    context = {
        **head_of(actor, row),
        "tab": "script",
        "is_script": bool(spec.script),
        "text": specs.script_of(spec)
        if spec.script
        else shlex.join(specs.argv_of(spec, row.parameters)),
        "parameters": [
            (name, specs.text_of(value), variable_of(name))
            for name, value in row.parameters.items()
        ],
        "names": sorted({*spec.env, *spec.secrets}),
        "spec": spec,
    }
    return render(request, "jobs/job_script.html", context)


def head_of(actor: Actor, row: Any) -> dict[str, Any]:
    """Return what stands above every tab."""
    is_own = row.owner_id == actor.user_id
    stops = Permission.JOBS_LAUNCH if is_own else Permission.JOBS_STOP_ANY
    is_over = selectors.is_over(row)
    may_launch = actor.can(Permission.JOBS_LAUNCH, team_id=row.team_id)
    may_stop = actor.can(stops, team_id=row.team_id)
    return {
        "here": "jobs",
        "job": row,
        "is_over": is_over,
        "shows_stop": may_stop and not is_over and not row.stop_reason,
        "shows_retry": may_launch and is_over,
        "shows_changes": may_launch and is_over and row.version.definition.archived_at is None,
        "shows_resume": may_launch and is_over and bool(selectors.resume_path(row)),
        "state": _state(row),
        "stopping": _stopping(row),
        "because": row.message or telling.because(row.reason),
        "ending": telling.ending(row.exit_code, row.signal) if is_over else "",
        **_spent(row),
    }


def _state(row: Any) -> str:
    """Return the word of the pill: a wish to stop is seen at once."""
    if row.stop_reason and not Phase(row.phase).is_final:
        return "stopping"
    return str(row.phase).lower()


def _stopping(row: Any) -> dict[str, Any] | None:
    """Say how far a stop is, while it lasts."""
    if _state(row) != "stopping":
        return None
    if row.cancelled_at:
        return {"text": "It was told to end. Waiting until the cluster says that it has."}
    if row.signalled_at:
        grace = specs.parse(row.version.spec).checkpoint.grace_seconds
        text = "Its checkpoint signal was sent. If it still runs then, it is ended"
        return {"text": text, "at": row.signalled_at + timedelta(seconds=grace)}
    return {"text": "It is asked to stop: its checkpoint signal first, if it has one."}


def _spent(row: Any) -> dict[str, Any]:
    """Return how long it has run, and what share of its limit that is."""
    limit = row.time_limit_seconds
    if row.started_at is None:
        return {"limit": telling.duration(limit)}
    end = row.ended_at or clock.now()
    seconds = max(0, int((end - row.started_at).total_seconds()))
    return {
        "seconds": seconds,
        "spent": telling.duration(seconds),
        "limit": telling.duration(limit),
        "percent": round(min(100, 100 * seconds / limit), 2),
        "ends_by": row.started_at + timedelta(seconds=limit),
    }


def _saved(found: Any) -> Saved:
    return Saved(
        at=found.at,
        name=found.name,
        attempt=found.attempt,
        bytes=found.bytes,
        seconds=found.seconds,
    )


def _happening(event: Any) -> Happening:
    return Happening(
        at=event.at,
        kind=event.kind,
        phase=event.phase,
        reason=event.reason,
        message=event.message,
        actor=event.actor_label,
        attempt=event.attempt,
    )
