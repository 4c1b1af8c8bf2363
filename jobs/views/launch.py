"""Pages to launch a job: choose a definition, fill in, see what would happen, launch."""

import hashlib
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from clusters import asks
from clusters import selectors as clusters
from jobs import commands, durations, forms, selectors
from jobs import spec as specs
from jobs.services import jobs
from jobs.services.jobs import Wanted
from jobs.services.preview import preview
from portal.core import ids
from portal.core.errors import NotAllowed
from portal.core.pages import attempt, both
from portal.teams import selectors as teams
from portal.teams.idempotency import once
from portal.teams.middleware import actor_of
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission

MOST_CHOICES = 200
TONES = {"starts": "ok", "waits": "wait", "refused": "bad"}


@login_required
@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """Choose what to launch; what the actor launched last comes first."""
    actor = actor_of(request)
    text = request.GET.get("q", "").strip()
    found = list(selectors.with_newest(selectors.find_definitions(actor, text))[:MOST_CHOICES])
    recent = {pk: place for place, pk in enumerate(selectors.recent_definitions(actor))}
    found.sort(key=lambda row: recent.get(row.pk, len(recent)))
    context = {
        "here": "launch",
        "rows": found,
        "recent": set(recent),
        "q": text,
        "may_launch": bool(_launching(actor)),
        "may_create": actor.can(Permission.TEAM_CREATE),
    }
    return render(request, "jobs/choose.html", context)


@login_required
@both
def launch(request: HttpRequest, definition: str) -> HttpResponse:
    """Launch a definition: its parameters as a form, and beside it what would happen."""
    actor = actor_of(request)
    row = selectors.definition_for(actor, definition)
    version = selectors.version_of(row, request.GET.get("version", ""))
    spec = specs.parse(version.spec)
    source = _source(actor, request.GET.get("from", ""))
    mine = [team for team in _launching(actor) if row.team_id in (None, team.pk)]
    form = forms.LaunchForm(
        request.POST or None,
        spec=spec,
        teams=mine,
        clusters=list(clusters.clusters_for(actor)[:MOST_CHOICES]),
        initial=forms.values_of(source, spec) if source else None,
    )
    context = {
        "here": "launch",
        "definition": row,
        "version": version,
        "form": form,
        "teams": mine,
        "source": source,
        "key": request.POST.get("key") or ids.new(),
        "last": None if source else selectors.last_launch(actor, row),
    }
    if request.method == "POST":
        if not mine:
            raise NotAllowed("not_allowed", "Only a member or manager of a team may launch.")
        call = _Launching(actor, version)
        if "preview" in request.POST:
            context |= _previewed(form, call)
        elif (made := attempt(form, partial(_launch_once, request, call))) is not None:
            return redirect("job", made)
    status = 422 if form.errors and "preview" not in request.POST else 200
    return render(request, "jobs/launch.html", context, status=status)


def _launch_once(request: HttpRequest, call: "_Launching", **values: Any) -> str:
    """Submit the job and return its id; the same form with the same values makes it once."""
    sent = request.POST.copy()
    sent.pop("csrfmiddlewaretoken", None)
    key = hashlib.sha256(sent.urlencode().encode()).hexdigest()

    def make() -> str:
        return str(call.submit(**values).pk)

    if not sent.get("key"):
        return make()
    return once(request.user, path=request.path, key=key, make=make)


class _Launching:
    """What is done with the values of a valid form."""

    def __init__(self, actor: Actor, version: Any) -> None:
        self.actor, self.version = actor, version

    def submit(self, **values: Any) -> Any:
        """Submit the job."""
        return jobs.submit(self.actor, self._wanted(**values))

    def preview(self, **values: Any) -> dict[str, Any]:
        """Return what submitting would do, and the same as commands for a terminal."""
        wanted = self._wanted(**values)
        found = preview(self.actor, wanted)
        definition = self.version.definition
        slug = definition.slug
        named = selectors.version_for(self.actor, wanted.team, slug, number=self.version.number)
        body = {
            "definition": slug if named == self.version else definition.pk,
            "version": self.version.number,
            **forms.body_of(specs.parse(self.version.spec), values),
        }
        return {
            "found": found,
            "tone": TONES[found.decision.verdict],
            "limit": durations.write(found.time_limit_seconds),
            "runs_as": asks.runs_as(wanted.cluster.id, wanted.team),
            "cli": commands.as_cli(body),
            "curl": commands.as_curl(body, url=settings.PUBLIC_URL),
        }

    def _wanted(self, *, team: str, cluster: str, **values: Any) -> Wanted:
        return Wanted(
            version=self.version,
            team=teams.team_for(self.actor, team),
            cluster=clusters.facts_of(clusters.cluster_for(self.actor, cluster)),
            **values,
        )


def _previewed(form: forms.LaunchForm, call: _Launching) -> dict[str, Any]:
    """Return what the page's preview shows: what would happen, or what is wrong."""
    found = attempt(form, call.preview)
    wrong = [
        (form[name].label if name in form.fields else "", messages)
        for name, messages in form.errors.items()
    ]
    return {"preview": found, "wrong": wrong, "previewed": True}


def _source(actor: Actor, job: str) -> Any:
    """Return the job whose values fill the form, if one is named."""
    return selectors.job_for(actor, job) if job else None


def _launching(actor: Actor) -> list[Team]:
    """Return the teams in which the actor may launch, by name."""
    return [
        team
        for team in teams.teams_for(actor).order_by("name")[:MOST_CHOICES]
        if actor.can(Permission.JOBS_LAUNCH, team_id=team.pk)
    ]
