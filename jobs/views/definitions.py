"""Pages of job definitions: list, one with its versions, the editor with its live check."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs import diffs, forms, selectors
from jobs import spec as specs
from jobs.reference import KEYS
from jobs.services import definitions
from portal.core.pages import act, attempt, both, numbered
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission


@login_required
def index(request: HttpRequest) -> HttpResponse:
    """Show the definitions of the actor's teams, and the built-in ones."""
    actor = actor_of(request)
    text = request.GET.get("q", "").strip()
    rows = selectors.find_definitions(actor, text)
    page = numbered(request, selectors.with_newest(rows))
    context = {
        "here": "definitions",
        "rows": page,
        "launchable": {row.pk for row in page if _may_launch(actor, row)},
        "q": text,
        "may_create": bool(_editable(actor)),
    }
    return render(request, "jobs/definitions.html", context)


@login_required
@both
def new(request: HttpRequest) -> HttpResponse:
    """Create a definition, from nothing or as a copy (`?from=`)."""
    actor = actor_of(request)
    mine = _editable(actor)
    initial: dict[str, Any] = {"team": request.GET.get("team", "")}
    if source := request.GET.get("from"):
        row = selectors.definition_for(actor, source)
        spec = selectors.newest_of(row).spec
        initial |= {"name": row.name, "slug": row.slug, "spec": forms.as_yaml(spec)}
    form = forms.DefinitionForm(request.POST or None, teams=mine, initial=initial)
    if request.method == "POST":

        def create(*, team: str, **values: Any) -> Any:
            return definitions.create_definition(actor, teams.team_for(actor, team), **values)

        made = attempt(form, create)
        if made is not None:
            messages.success(request, f"{made.name} is saved as version 1.")
            return redirect("definition", made.pk)
    context = {"here": "definitions", "form": form, "teams": mine, "keys": KEYS}
    return render(request, "jobs/definition_new.html", context, status=422 if form.errors else 200)


@login_required
@both
def one(request: HttpRequest, definition: str) -> HttpResponse:
    """Show a definition and its versions; save a new one."""
    actor = actor_of(request)
    row = selectors.definition_for(actor, definition)
    versions = numbered(request, selectors.versions_for(actor, row))
    shown = selectors.version_of(row, request.GET.get("version", ""))
    initial = {"name": row.name, "spec": forms.as_yaml(shown.spec)}
    form = forms.VersionForm(request.POST or None, initial=initial)
    if request.method == "POST":
        saved = attempt(form, lambda **values: definitions.save_version(actor, row, **values))
        if saved is not None:
            messages.success(request, f"Version {saved.latest} is the newest now.")
            return redirect("definition", definition)
    against = _against(row, shown, request.GET.get("against", ""))
    may_edit = row.team is not None and actor.can(Permission.DEFINITIONS_EDIT, team_id=row.team_id)
    context = {
        "here": "definitions",
        "definition": row,
        "shown": shown,
        "text": initial["spec"],
        "rows": versions,
        "against": against,
        "diff": diffs.compare(forms.as_yaml(against.spec), initial["spec"]) if against else [],
        "keys": KEYS,
        "form": form,
        "may_edit": may_edit,
        "may_copy": bool(_editable(actor)),
        "may_launch": _may_launch(actor, row),
    }
    return render(request, "jobs/definition.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """Say what is wrong with the definition in the form, while it is typed; saves nothing."""
    field = forms.YamlField()
    faults: list[dict[str, str]] = []
    try:
        raw = field.clean(request.POST.get("spec", ""))
    except ValidationError as error:
        faults = [{"pointer": "", "message": message} for message in error.messages]
    else:
        faults = [{"pointer": f.pointer, "message": f.message} for f in specs.check(raw)]
    return render(request, "jobs/parts/faults.html", {"faults": faults, "checked": True})


@login_required
@require_POST
def delete(request: HttpRequest, definition: str) -> HttpResponse:
    """Take a definition out of use."""
    actor = actor_of(request)
    row = selectors.definition_for(actor, definition)
    return act(
        request,
        lambda: definitions.delete_definition(actor, row),
        done=f"{row.name} is out of use. Its versions stay for the jobs that ran them.",
        to=reverse("definitions"),
    )


@login_required
def export(request: HttpRequest, definition: str) -> HttpResponse:
    """Download a version as YAML."""
    row = selectors.definition_for(actor_of(request), definition)
    version = selectors.version_of(row, request.GET.get("version", ""))
    response = HttpResponse(forms.as_yaml(version.spec), content_type="application/yaml")
    name = f"{row.slug}-v{version.number}.yaml"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _against(row: Any, shown: Any, number: str) -> Any:
    """Return the version to compare with: the one that is named, else the one before."""
    before = str(shown.number - 1) if shown.number > 1 else ""
    chosen = number or before
    return selectors.version_of(row, chosen) if chosen else None


def _may_launch(actor: Actor, row: Any) -> bool:
    """Tell whether the actor may launch it: in its team, or a built-in one in any."""
    if row.team_id is not None:
        return actor.can(Permission.JOBS_LAUNCH, team_id=row.team_id)
    if actor.can(Permission.SITE_EDIT):
        return True
    return any(actor.can(Permission.JOBS_LAUNCH, team_id=team) for team in actor.roles)


def _editable(actor: Actor) -> list[Team]:
    """Return the teams whose definitions the actor may save, by name."""
    return [
        team
        for team in teams.teams_for(actor).order_by("name")[:200]
        if actor.can(Permission.DEFINITIONS_EDIT, team_id=team.pk)
    ]
