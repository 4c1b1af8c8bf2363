"""The page of quotas, whose use only jobs can tell."""

from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from jobs import selectors as jobs
from jobs.values import Usage
from portal.core.pages import attempt, both
from portal.teams import forms
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.models import Limit
from portal.teams.services import limits
from portal.teams.views.team import team_page

LABELS = {
    "gpus": "GPUs at once",
    "nodes": "Nodes at once",
    "running_jobs": "Running jobs",
    "gpu_hours_per_month": "GPU-hours this month",
}


@login_required
@both
def quotas(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what the team may use and uses, and change the limits."""
    actor = actor_of(request)
    team = teams.team_for(actor, slug)
    limit = teams.limit_for(actor, team)
    form = forms.LimitForm(request.POST or None, initial=forms.LimitForm.initial_of(limit))
    if request.method == "POST":
        saved = attempt(form, lambda **values: limits.set_limits(actor, team, wanted=values))
        if saved is not None:
            messages.success(request, "The limits are saved.")
            return redirect("team-quotas", slug)
    return team_page(
        request,
        team,
        "quotas",
        template="jobs/quotas.html",
        status=422 if form.errors else 200,
        form=form,
        bars=_bars(limit, jobs.usage_of(team)),
    )


def _bars(limit: Limit, used: Usage) -> list[dict[str, Any]]:
    rows = [(label, getattr(limit, name), getattr(used, name)) for name, label in LABELS.items()]
    types = {**dict.fromkeys(used.gpus_by_type), **limit.gpus_by_type}
    rows[1:1] = [
        (f"{name.upper()} GPUs", most, used.gpus_by_type.get(name, 0))
        for name, most in sorted(types.items())
    ]
    return [_bar(*row) for row in rows]


def _bar(label: str, limit: Decimal | int | None, used: Decimal | int) -> dict[str, Any]:
    if limit is None:
        return {"label": label, "limit": None, "words": f"{used:,} of no limit"}
    full = used >= limit
    percent = min(100.0, 100 * float(used) / float(limit)) if limit else 100.0 * bool(used)
    words = f"{_number(used)} of {_number(limit)}{', full' if full and limit else ''}"
    if limit == 0:
        words = "0, so nothing starts"
    bar = {"label": label, "limit": limit, "words": words, "full": full}
    return {**bar, "percent": f"{percent:.2f}"}


def _number(value: Decimal | int) -> str:
    return f"{value.normalize():,f}" if isinstance(value, Decimal) else f"{value:,}"
