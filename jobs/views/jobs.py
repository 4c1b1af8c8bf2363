"""Pages of jobs: the list with its live rows, and the acts on one job or on many."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from clusters import selectors as clusters
from jobs import filters, selectors
from jobs.services import again, jobs
from jobs.views.rows import rows_of
from portal.core.errors import Invalid
from portal.core.pages import act, stretch
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.roles import Actor, Permission

MOST_TICKED = 500
MOST_ROWS = 100
MOST_CHOICES = 200
PHASES = {
    "": "All",
    "QUEUED,ADMITTED,SUBMITTED": "Waiting",
    "RUNNING,STOPPING": "Running",
    "SUCCEEDED": "Succeeded",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
}
FILTERS = ("q", "phase", "team", "cluster", "owner", "definition", "tag", "created_after")
OF_PAGE = ("before", "after")


@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the jobs of the actor's teams, newest first."""
    actor = actor_of(request)
    found = selectors.jobs_for(actor)
    try:
        found = _filtered(actor, request)
    except Invalid as error:
        messages.error(request, error.errors[0].message)
    page = stretch(request, found)
    mine = list(teams.teams_for(actor).order_by("name")[:MOST_CHOICES])
    context = {
        "here": "jobs",
        "page": page,
        "rows": rows_of(actor, page.rows),
        "wanted": request.GET,
        "is_filtered": any(request.GET.get(name) for name in FILTERS),
        "query": request.GET.urlencode(),
        "phases": [(_with(request, phase=code), code, word) for code, word in PHASES.items()],
        "mine": _with(request, owner="" if request.GET.get("owner") == "me" else "me"),
        "teams": mine if len(mine) > 1 else [],
        "shows_team": len(mine) > 1,
        "clusters": clusters.clusters_for(actor)[:MOST_CHOICES],
        "definitions": selectors.names_of_definitions(actor)[:MOST_CHOICES],
        "may_launch": any(actor.can(Permission.JOBS_LAUNCH, team_id=team.pk) for team in mine),
    }
    return render(request, "jobs/jobs.html", context)


@login_required
@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """Show these jobs (`job=…`) as rows, and say how many newer ones than `newest` match."""
    actor = actor_of(request)
    named = selectors.jobs_among(actor, request.GET.getlist("job")[:MOST_ROWS])
    newest = request.GET.get("newest", "")[:26]
    newer = _filtered(actor, request).filter(pk__gt=newest)[:MOST_ROWS].count() if newest else 0
    context = {
        "rows": rows_of(actor, named),
        "newer": f"{newer - 1}+" if newer == MOST_ROWS else newer,
        "shows_team": request.GET.get("shows_team") == "1",
        "is_fragment": True,
    }
    return render(request, "jobs/parts/rows.html", context)


def _filtered(actor: Actor, request: HttpRequest) -> QuerySet[Any]:
    """Return the jobs that the page's filters keep; the owner `me` is who asks."""
    rows, wanted = selectors.jobs_for(actor), request.GET.dict()
    if wanted.get("owner") == "me":
        rows = rows.filter(owner=actor.user_id)
        del wanted["owner"]
    return filters.jobs(rows, wanted)


def _with(request: HttpRequest, **changes: str) -> str:
    """Return the query of the page with other filters, from its beginning."""
    query = request.GET.copy()
    for name in OF_PAGE:
        query.pop(name, None)
    for name, value in changes.items():
        query.pop(name, None)
        if value:
            query[name] = value
    return query.urlencode()


@login_required
@require_POST
def stop(request: HttpRequest, job: str) -> HttpResponse:
    """Stop a job."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    return act(
        request,
        lambda: jobs.stop(actor, row),
        done="It is asked to stop: its checkpoint signal first, if it has one.",
        to=reverse("job", args=[job]),
    )


@login_required
@require_POST
def retry(request: HttpRequest, job: str) -> HttpResponse:
    """Run a job again, as a new one."""
    return _again(request, job, again.retry, "is in line once more, as a new job.")


@login_required
@require_POST
def resume(request: HttpRequest, job: str) -> HttpResponse:
    """Go on from a job's last complete checkpoint, as a new job."""
    done = "is in line, to go on from its last checkpoint as a new job."
    return _again(request, job, again.resume, done)


def _again(
    request: HttpRequest, job: str, make: Callable[[Actor, Any], Any], done: str
) -> HttpResponse:
    """Make a new job of one that has ended, and go to it."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    return act(
        request,
        lambda: make(actor, row),
        done=f"{row.name} {done}",
        to=lambda made: reverse("job", args=[made.pk]),
        back=reverse("job", args=[job]),
    )


@login_required
@require_POST
def stop_many(request: HttpRequest) -> HttpResponse:
    """Stop the jobs that were ticked."""
    actor = actor_of(request)
    rows = selectors.jobs_among(actor, request.POST.getlist("job")[:MOST_TICKED])
    stopped = jobs.stop_many(actor, rows)
    words = "1 job is" if stopped == 1 else f"{stopped} jobs are"
    messages.success(request, f"{words} asked to stop.")
    return redirect(f"{reverse('jobs')}?{request.POST.get('query', '')[:2000]}")
