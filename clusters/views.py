"""Pages of clusters: the list. One cluster's page shows its jobs, so it lives in jobs."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from clusters import selectors
from portal.core.pages import numbered
from portal.teams.middleware import actor_of


@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the clusters that the actor may see, with what is in use of them as last seen."""
    rows = numbered(request, selectors.clusters_for(actor_of(request)))
    use = {row.pk: selectors.use_of(row) for row in rows}
    context = {"here": "clusters", "rows": rows, "use": [(row, use[row.pk]) for row in rows]}
    return render(request, "clusters/clusters.html", context)
