"""The metrics tab of a job: charts of its samples, or why there are none."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs import selectors
from jobs.states import Phase
from jobs.views.job import head_of
from portal.teams.middleware import actor_of


@login_required
@require_safe
def metrics(request: HttpRequest, job: str) -> HttpResponse:
    """Show the figures of the machines that a job runs on, as they come."""
    actor = actor_of(request)
    row = selectors.job_for(actor, job)
    context = {**head_of(actor, row), "tab": "metrics", "why": why_none(row)}
    return render(request, "jobs/job_metrics.html", context)


def why_none(row: Any) -> dict[str, str]:
    """Say why there may be no samples of a job: what is so, and what to do or wait for."""
    phase = Phase(row.phase)
    if phase.is_final and row.started_at is None:
        return {"what": "It never ran", "then": "Figures come from the node while a job runs."}
    if phase.is_final:
        what = "No samples came while it ran, or they are older than samples are kept"
        return {"what": what, "then": "Without python3 on its node there is no agent to take them."}
    if row.started_at is None:
        then = "Figures come every 5 seconds once it runs."
        return {"what": "No samples yet: it has not started", "then": then}
    if not selectors.has_agent(row):
        then = (
            "It starts with the command. If nothing comes within a minute, the node has no python3 "
            "or does not reach the portal: then the command runs, and there are no figures."
        )
        return {"what": "No samples yet: its agent has not been heard", "then": then}
    return {"what": "No samples yet", "then": "The first comes within a few seconds."}
