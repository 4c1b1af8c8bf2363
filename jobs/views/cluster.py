"""The page of one cluster: its machines, who runs and waits there, who may launch, and a check."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from clusters import asks, forms, services, values
from clusters import selectors as clusters
from jobs import selectors
from jobs.views.rows import rows_of
from portal.core.errors import Conflict, OutsideError
from portal.core.pages import attempt, both
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.roles import Actor, Permission

MOST_JOBS = 50
MOST_TEAMS = 1000


@login_required
@both
def one(request: HttpRequest, cluster: str) -> HttpResponse:
    """Show a cluster; change who may launch there."""
    actor = actor_of(request)
    row = clusters.cluster_for(actor, cluster)
    mine = list(teams.teams_for(actor).order_by("name")[:MOST_TEAMS])
    assigned = [team for team in clusters.teams_of(row) if team in mine]
    form = forms.ClusterForm(
        request.POST or None,
        teams=mine,
        initial={
            "name": row.name,
            "is_shared": row.is_shared,
            "teams": [team.slug for team in assigned],
        },
    )
    if request.method == "POST":
        saved = attempt(form, lambda **v: services.update_cluster(actor, row, **v))
        if saved is not None:
            messages.success(request, "Saved.")
            return redirect("cluster", cluster)
    context = {
        "here": "clusters",
        "cluster": row,
        "assigned": assigned,
        "has_wall": asks.has_wall(row.pk),
        "form": form,
        "may_edit_cluster": actor.can(Permission.SITE_EDIT),
        **_machines(row),
        **_jobs(actor, row),
    }
    return render(request, "jobs/cluster.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def check(request: HttpRequest, cluster: str) -> HttpResponse:
    """Try the way to the cluster now, and show what holds and what to mend."""
    actor = actor_of(request)
    row = clusters.cluster_for(actor, cluster)
    context: dict[str, Any] = {"here": "clusters", "cluster": row, "checked": True}
    try:
        context["steps"] = steps = asks.check(actor, row)
        context["good"] = sum(step.is_ok for step in steps)
    except (Conflict, OutsideError) as error:
        context["refused"] = error.message
    return render(request, "jobs/cluster_check.html", context)


def _machines(row: Any) -> dict[str, Any]:
    """Return the machines as they are now; when nobody answers, as they were seen last."""
    away = ""
    try:
        nodes = list(asks.nodes_of(row.pk))
    except OutsideError as error:
        nodes, away = list(clusters.facts_of(row).nodes), error.message
    return {"nodes": nodes, "use": values.use_of(nodes), "away": away}


def _jobs(actor: Actor, row: Any) -> dict[str, Any]:
    """Return which of the actor's jobs run there, and which wait, oldest first."""
    rows = rows_of(actor, selectors.on_cluster(actor, row.pk)[: 2 * MOST_JOBS])
    waiting = [job for job in rows if job.waits]
    return {
        "running": [job for job in rows if not job.waits][:MOST_JOBS],
        "waiting": waiting[:MOST_JOBS],
        "waiting_count": len(waiting),
        "is_more": len(rows) == 2 * MOST_JOBS,
    }
