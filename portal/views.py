"""The pages that mix rooms: the dashboard, the command palette, the API's documentation."""

from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView

from clusters import selectors as clusters
from jobs import filters
from jobs import selectors as jobs
from jobs.views.rows import Row, rows_of
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission

FOUND = 6
RECENT = 8
MOST_GOING = 200
MOST_CLUSTERS = 20
METHODS = ("get", "post", "put", "patch", "delete")


class Schema(SpectacularAPIView):
    """The OpenAPI 3.1 document of the REST API, for everybody: it holds no secret."""


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    """Show what is true now, or on a new site what to do next."""
    actor = actor_of(request)
    going = rows_of(actor, jobs.unfinished_for(actor, most=MOST_GOING))
    ended = rows_of(actor, jobs.ended_for(actor)[:RECENT])
    mine = [row for row in going if row.job.owner_id == actor.user_id]
    context: dict[str, Any] = {
        "here": "dashboard",
        "has_jobs": bool(going or ended),
        "waiting": [row for row in mine if row.waits][:RECENT],
        "running": [row for row in mine if not row.waits][:RECENT],
        "counts": _counts(mine),
        "others": _counts([row for row in going if row.job.owner_id != actor.user_id]),
        "is_more": len(going) == MOST_GOING,
        "ended": ended,
        "clusters": [
            (row, clusters.use_of(row)) for row in clusters.clusters_for(actor)[:MOST_CLUSTERS]
        ],
        "events": teams.recent_events_for(actor),
    }
    if not context["has_jobs"]:
        team = teams.teams_for(actor).order_by("-pk").first()
        context |= {"next": _next_step(actor, team), "steps": _steps(actor, team)}
    return render(request, "portal/dashboard.html", context)


def _counts(rows: list[Row]) -> dict[str, int]:
    """Return how many of the rows run and how many wait."""
    waiting = sum(row.waits for row in rows)
    return {"running": len(rows) - waiting, "waiting": waiting}


def _next_step(actor: Actor, team: Team | None) -> dict[str, str]:
    """Return the one thing that is best done now."""
    if team is None and actor.can(Permission.TEAM_CREATE):
        return {
            "icon": "team",
            "title": "Create the first team",
            "text": "A team holds people, secrets, quotas, definitions and jobs. "
            "Everybody works in one; nobody sees another's.",
            "href": reverse("admin-team-new"),
            "verb": "Create a team",
        }
    if team is None:
        return {
            "icon": "team",
            "title": "You are in no team yet",
            "text": f"Ask a manager or an admin to add {actor.email}. "
            "This page shows the team as soon as that is done.",
            "href": "",
            "verb": "",
        }
    first = jobs.built_in("complete-run")
    if first is not None and actor.can(Permission.JOBS_LAUNCH, team_id=team.pk):
        return {
            "icon": "launch",
            "title": "Launch the complete run",
            "text": "It loads a small data set, trains a small model, writes a checkpoint, "
            "restores it in a fresh process, and measures all of it. It takes seconds.",
            "href": reverse("launch", args=[first.pk]),
            "verb": "Launch the complete run",
        }
    if actor.can(Permission.MEMBERS_EDIT, team_id=team.pk):
        return {
            "icon": "user",
            "title": f"Add people to {team.name}",
            "text": "Somebody with an account joins at once; anybody else gets a link that works "
            "once, for 14 days.",
            "href": reverse("team", args=[team.slug]),
            "verb": "Add people",
        }
    return {
        "icon": "key",
        "title": "Make an API token",
        "text": "With it the command line and your own scripts do what you may do here.",
        "href": reverse("me") + "#tokens",
        "verb": "Make a token",
    }


def _steps(actor: Actor, team: Team | None) -> list[dict[str, Any]]:
    """Return the three steps of a new site, each with its state."""
    counts = teams.counts_of(team) if team else {"people": 0, "secret_count": 0}
    has_tokens = teams.tokens_for(actor).exists()
    return [
        {
            "title": "A team with people",
            "text": "Viewers see, members launch, managers look after people, secrets and quotas.",
            "done": counts["people"] > 1,
            "word": f"{counts['people']} people" if counts["people"] != 1 else "1 person",
            "href": reverse("team", args=[team.slug]) if team else "",
            "verb": "Open",
        },
        {
            "title": "Secrets for jobs",
            "text": "Encrypted, given to running jobs alone, and never shown again.",
            "done": counts["secret_count"] > 0,
            "word": f"{counts['secret_count']} stored",
            "href": reverse("team-secrets", args=[team.slug]) if team else "",
            "verb": "Open",
        },
        {
            "title": "A token for scripts",
            "text": "The same as here by REST and with ./slipway on a terminal.",
            "done": has_tokens,
            "word": "Made" if has_tokens else "None yet",
            "href": reverse("me") + "#tokens",
            "verb": "Open",
        },
    ]


@login_required
def palette(request: HttpRequest) -> HttpResponse:
    """Find jobs, definitions, teams and people: `{"results": [{title, href, …}]}`."""
    actor = actor_of(request)
    text = request.GET.get("q", "").strip()[:200]
    sees_all = actor.can(Permission.SITE_VIEW)
    results: list[dict[str, str]] = []
    if len(text) >= 2:
        for job in filters.jobs(jobs.jobs_for(actor), {"q": text}).order_by("-pk")[:FOUND]:
            href = reverse("job", args=[job.pk])
            results.append(_found("Jobs", "jobs", job.name, href, job.phase.capitalize()))
        for row in jobs.find_definitions(actor, text)[:FOUND]:
            href = reverse("definition", args=[row.pk])
            results.append(_found("Definitions", "doc", row.name, href, row.slug))
        for team in teams.find_teams(actor, text)[:FOUND]:
            href = reverse("team", args=[team.slug])
            results.append(_found("Teams", "team", team.name, href, team.slug))
        for user in teams.find_users(actor, text)[:FOUND]:
            slug = user.team_slug  # type: ignore[attr-defined] # annotated by find_users
            everybody = f"{reverse('admin-users')}?{urlencode({'q': user.email})}"
            href = everybody if sees_all else reverse("team", args=[slug])
            results.append(_found("People", "user", user.label, href, user.email))
    return JsonResponse({"results": results})


def _found(group: str, icon: str, title: str, href: str, detail: str) -> dict[str, str]:
    return {"group": group, "icon": icon, "title": title, "href": href, "detail": detail}


@login_required
def api_docs(request: HttpRequest) -> HttpResponse:
    """Show the REST API as a page made from its own schema."""
    context = {"here": "api", "groups": _groups(), "public_url": settings.PUBLIC_URL}
    return render(request, "portal/api_docs.html", context)


@lru_cache(maxsize=1)
def _groups() -> dict[str, list[dict[str, Any]]]:
    """Return the operations by their part of the API; the schema is the same for everybody."""
    generator: Any = SchemaGenerator  # untyped
    schema = generator().get_schema(request=None, public=True)
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in schema["paths"].items():
        name = path.removeprefix("/api/v1/").split("/")[0]
        for method in METHODS:
            if method in operations:
                groups.setdefault(name, []).append(_operation(schema, path, method, operations))
    return groups


def _operation(
    schema: dict[str, Any], path: str, method: str, operations: dict[str, Any]
) -> dict[str, Any]:
    operation = operations[method]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answers = [
        (code, _fields(schema, answer.get("content", {}).get("application/json", {})))
        for code, answer in operation["responses"].items()
        if code < "400"  # errors look alike everywhere
    ]
    return {
        "method": method.upper(),
        "path": path,
        "id": operation["operationId"],
        "text": operation.get("description", ""),
        "query": [p for p in operation.get("parameters", []) if p["in"] == "query"],
        "body": _fields(schema, body),
        "answers": answers,
    }


def _fields(schema: dict[str, Any], content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of an object in the schema: name, type, whether required, description."""
    shape = _resolved(schema, content.get("schema", {}))
    required = set(shape.get("required", []))
    return [
        {
            "name": name,
            "type": _type_of(_resolved(schema, part)),
            "required": name in required,
            "text": part.get("description", ""),
        }
        for name, part in shape.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    reference = part.get("$ref") or next(
        (p["$ref"] for p in part.get("allOf", part.get("oneOf", [])) if "$ref" in p), None
    )
    if reference is None:
        return part
    found: dict[str, Any] = schema["components"]["schemas"][reference.rsplit("/", 1)[-1]]
    return found


def _type_of(part: dict[str, Any]) -> str:
    if "enum" in part:
        return " | ".join(str(value) or "“”" for value in part["enum"])
    kinds = part.get("type", "object")
    text = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    return f"{text} ({part['format']})" if "format" in part else text
