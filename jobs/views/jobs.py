"""Pages of jobs: the list, the launch form, and the acts on one job."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from clusters import selectors as clusters
from jobs import filters, forms, selectors
from jobs import spec as specs
from jobs.services import again, jobs
from jobs.services.jobs import Wanted
from jobs.states import Phase
from portal.core.errors import Invalid
from portal.core.pages import act, attempt, both, numbered
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission

MOST_TICKED = 500


@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the jobs of the actor's teams, newest first."""
    actor = actor_of(request)
    rows = selectors.jobs_for(actor)
    try:
        rows = filters.jobs(rows, request.GET.dict())
    except Invalid as error:
        messages.error(request, error.errors[0].message)
    context = {
        "here": "jobs",
        "rows": numbered(request, rows),
        "wanted": request.GET,
        "phases": [str(phase) for phase in Phase],
        "may_launch": bool(_launching(actor)),
    }
    return render(request, "jobs/jobs.html", context)


@login_required
@both
def launch(request: HttpRequest, definition: str) -> HttpResponse:
    """Launch a definition: its parameters as a form."""
    actor = actor_of(request)
    row = selectors.definition_for(actor, definition)
    version = selectors.version_of(row, request.GET.get("version", ""))
    mine = _launching(actor) if row.team is None else [row.team]
    form = forms.LaunchForm(
        request.POST or None,
        spec=specs.parse(version.spec),
        teams=mine,
        clusters=list(clusters.clusters_for(actor)),
    )
    if request.method == "POST":

        def submit(*, team: str, cluster: str, **values: Any) -> Any:
            wanted = Wanted(
                version=version,
                team=teams.team_for(actor, team),
                cluster=clusters.facts_of(clusters.cluster_for(actor, cluster)),
                **values,
            )
            return jobs.submit(actor, wanted)

        made = attempt(form, submit)
        if made is not None:
            return redirect("job", made.pk)
    context = {"here": "jobs", "definition": row, "version": version, "form": form}
    return render(request, "jobs/launch.html", context, status=422 if form.errors else 200)


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
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    return act(
        request,
        lambda: again.retry(actor, row),
        done=f"{row.name} is in line once more, as a new job.",
        to=reverse("jobs"),
    )


@login_required
@require_POST
def resume(request: HttpRequest, job: str) -> HttpResponse:
    """Go on from a job's last complete checkpoint, as a new job."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    return act(
        request,
        lambda: again.resume(actor, row),
        done=f"{row.name} is in line, to go on from its last checkpoint as a new job.",
        to=reverse("jobs"),
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


def _launching(actor: Actor) -> list[Team]:
    """Return the teams in which the actor may launch, by name."""
    return [
        team
        for team in teams.teams_for(actor).order_by("name")[:200]
        if actor.can(Permission.JOBS_LAUNCH, team_id=team.pk)
    ]
