"""Pages of the site's admins and auditors: teams, people, the audit log."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core.errors import Invalid
from portal.core.pages import act, attempt, both, numbered
from portal.teams import filters, forms, selectors
from portal.teams.middleware import actor_of
from portal.teams.models import AuditEvent
from portal.teams.roles import Permission
from portal.teams.services import teams, users
from portal.teams.services.access import require

COLUMNS = ("id", "at", "actor", "actor_id", "via", "action", "team", "subject", "facts")
KINDS = ("team", "member", "token", "secret", "quota", "user", "route", "delivery")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@login_required
def admin_teams(request: HttpRequest) -> HttpResponse:
    """Show all teams."""
    actor = actor_of(request)
    text = request.GET.get("q", "").strip()
    rows = numbered(request, selectors.all_teams_for(actor, text))
    return render(
        request, "teams/admin_teams.html", {"here": "admin-teams", "rows": rows, "q": text}
    )


@login_required
@both
def admin_team_new(request: HttpRequest) -> HttpResponse:
    """Create a team."""
    actor = actor_of(request)
    require(actor, Permission.TEAM_CREATE)
    form = forms.TeamForm(request.POST or None)
    if request.method == "POST":
        team = attempt(form, lambda **values: teams.create_team(actor, **values))
        if team is not None:
            messages.success(request, f"The team {team.name} exists now. Add its people.")
            return redirect("team", team.slug)
    context = {"here": "admin-teams", "form": form}
    return render(request, "teams/admin_team_new.html", context, status=422 if form.errors else 200)


@login_required
def admin_users(request: HttpRequest) -> HttpResponse:
    """Show all people, by a part of name or e-mail, role and state."""
    actor = actor_of(request)
    wanted = request.GET
    rows = selectors.users_for(actor)
    try:
        rows = filters.users(rows, wanted.dict())
    except Invalid as error:
        messages.error(request, error.errors[0].message)
    context = {"here": "admin-users", "rows": numbered(request, rows), "wanted": wanted}
    return render(request, "teams/admin_users.html", context)


@login_required
@require_POST
def admin_user(request: HttpRequest, user: str) -> HttpResponse:
    """Change a person's site role, deactivate or reactivate."""
    actor = actor_of(request)
    changes: dict[str, Any] = {}
    if "site_role" in request.POST:
        changes["site_role"] = request.POST["site_role"]
    if "is_active" in request.POST:
        changes["is_active"] = request.POST["is_active"] == "true"
    words = {
        True: "The person can sign in again.",
        False: "Deactivated: sessions and tokens ended.",
    }
    return act(
        request,
        lambda: users.change_user(actor, user_id=user, **changes),
        done=words.get(changes.get("is_active"), "The site role is changed."),  # type: ignore[arg-type] # None is no key
        to=reverse("admin-users"),
    )


@login_required
def admin_audit(request: HttpRequest) -> HttpResponse:
    """Show the audit log with filters."""
    actor = actor_of(request)
    rows = selectors.audit_for(actor)
    try:
        rows = filters.audit(rows, request.GET.dict())
    except Invalid as error:
        messages.error(request, error.errors[0].message)
    context = {
        "here": "admin-audit",
        "rows": numbered(request, rows),
        "wanted": request.GET,
        "kinds": KINDS,
        "query": request.GET.urlencode(),
        "sealed": selectors.sealed_of(actor),
    }
    return render(request, "teams/admin_audit.html", context)


@login_required
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Stream the filtered audit log as CSV, or as JSON lines with `?format=jsonl`."""
    actor = actor_of(request)
    rows = filters.audit(selectors.audit_for(actor), request.GET.dict())
    as_json = request.GET.get("format") == "jsonl"
    kind, name = ("application/jsonl", "audit.jsonl") if as_json else ("text/csv", "audit.csv")
    lines = _as_json(rows.iterator()) if as_json else _as_csv(rows.iterator())
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _columns(event: AuditEvent) -> tuple[Any, ...]:
    return (
        event.pk,
        event.at.isoformat(),
        event.actor_label,
        event.actor_id,
        event.via,
        event.action,
        event.team_slug,
        event.subject,
        event.facts,
    )


def _as_json(events: Iterator[AuditEvent]) -> Iterator[str]:
    for event in events:
        yield json.dumps(dict(zip(COLUMNS, _columns(event), strict=True))) + "\n"


class _Echo:
    def write(self, text: str) -> str:
        return text


def _as_csv(events: Iterator[AuditEvent]) -> Iterator[str]:
    """Write rows; a cell that a spreadsheet would run as a formula gets an apostrophe."""
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for event in events:
        cells = [
            c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in _columns(event)
        ]
        yield writer.writerow([f"'{c}" if c.startswith(_FORMULA) else c for c in cells])
