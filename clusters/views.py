"""Pages of clusters: the list, and one with its machines and who may launch there."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from clusters import asks, forms, selectors, services
from portal.core.errors import OutsideError
from portal.core.pages import attempt, both, numbered
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.roles import Permission


@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the clusters that the actor may see."""
    rows = numbered(request, selectors.clusters_for(actor_of(request)))
    return render(request, "clusters/clusters.html", {"here": "clusters", "rows": rows})


@login_required
@both
def one(request: HttpRequest, cluster: str) -> HttpResponse:
    """Show a cluster's machines; change who may launch there."""
    actor = actor_of(request)
    row = selectors.cluster_for(actor, cluster)
    mine = list(teams.teams_for(actor).order_by("name")[:1000])
    assigned = [team for team in selectors.teams_of(row) if team in mine]
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
    nodes, away = [], ""
    try:
        nodes = list(asks.nodes_of(row.pk))
    except OutsideError as error:
        away = error.message
    context = {
        "here": "clusters",
        "cluster": row,
        "assigned": assigned,
        "nodes": nodes,
        "away": away,
        "has_wall": asks.has_wall(row.pk),
        "form": form,
        "may_edit_cluster": actor.can(Permission.SITE_EDIT),
    }
    return render(request, "clusters/cluster.html", context, status=422 if form.errors else 200)
