"""Pages of notices: what needs attention, the routes of a team or the site, one route."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core.pages import act, attempt, both, numbered
from portal.notices import forms, selectors, services
from portal.notices.models import Route
from portal.teams import selectors as teams
from portal.teams.middleware import actor_of
from portal.teams.models import Team
from portal.teams.roles import Permission
from portal.teams.services.access import require
from portal.teams.views.team import team_page


@login_required
def raised(request: HttpRequest) -> HttpResponse:
    """Show every matter that is not well, in all of the actor's teams."""
    rows = numbered(request, selectors.raised_for(actor_of(request)))
    return render(request, "notices/raised.html", {"here": "notices", "rows": rows})


@login_required
@both
def team_routes(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the team's routes; add one."""
    team = teams.team_for(actor_of(request), slug)
    context = _routes(request, team)
    if context is None:
        return redirect("team-notices", slug)
    status = 422 if context["form"].errors else 200
    template = "notices/team.html"
    return team_page(request, team, "notices", template=template, status=status, **context)


@login_required
@both
def site_routes(request: HttpRequest) -> HttpResponse:
    """Show the site's routes; add one."""
    require(actor_of(request), Permission.SITE_VIEW)
    context = _routes(request, None)
    if context is None:
        return redirect("admin-notices")
    status = 422 if context["form"].errors else 200
    return render(request, "notices/site.html", {"here": "admin-notices", **context}, status=status)


def _routes(request: HttpRequest, team: Team | None) -> dict[str, Any] | None:
    """Return what a page of routes shows; `None` when a route was made and the page is anew."""
    actor = actor_of(request)
    form = forms.RouteForm(request.POST or None)
    created = None
    if request.method == "POST":
        created = attempt(form, lambda **v: services.create_route(actor, team=team, **v))
        if created is not None and created.signing_secret is None:
            messages.success(request, f"The route {created.row.name} is made. Test it.")
            return None
        if created is not None:
            form = forms.RouteForm()
    may = Permission.NOTICES_EDIT if team else Permission.SITE_EDIT
    return {
        "form": form,
        "created": created,
        "signing_secret": created.signing_secret.reveal()
        if created and created.signing_secret
        else "",
        "routes": selectors.routes_of(actor, team),
        "levels": selectors.raised_of(actor, team),
        "may_edit_routes": actor.can(may, team_id=team.pk if team else None),
    }


@login_required
@both
def route(request: HttpRequest, route: str) -> HttpResponse:
    """Show a route with its deliveries; change it."""
    actor = actor_of(request)
    row = selectors.route_for(actor, route)
    form = forms.RouteChangeForm(
        request.POST or None, initial=forms.RouteChangeForm.initial_of(row)
    )
    if request.method == "POST":
        saved = attempt(form, lambda **v: services.update_route(actor, row, **v))
        if saved is not None:
            messages.success(request, "The route is saved.")
            return redirect("route", route)
    may = Permission.NOTICES_EDIT if row.team else Permission.SITE_EDIT
    context: dict[str, Any] = {
        "here": "notices" if row.team else "admin-notices",
        "route": row,
        "form": form,
        "rows": numbered(request, selectors.deliveries_for(actor, row)),
        "may_edit_routes": actor.can(may, team_id=row.team_id),
    }
    if row.team:
        status = 422 if form.errors else 200
        template = "notices/route.html"
        return team_page(request, row.team, template=template, status=status, **context)
    return render(request, "notices/route.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def route_test(request: HttpRequest, route: str) -> HttpResponse:
    """Send a test along the route."""
    actor = actor_of(request)
    row = selectors.route_for(actor, route)
    return act(
        request,
        lambda: services.test_route(actor, row),
        done="A test is on its way. Its outcome appears below in a moment.",
        to=reverse("route", args=[route]),
    )


@login_required
@require_POST
def route_delete(request: HttpRequest, route: str) -> HttpResponse:
    """Delete a route."""
    actor = actor_of(request)
    row = selectors.route_for(actor, route)
    return act(
        request,
        lambda: services.delete_route(actor, row),
        done=f"The route {row.name} is deleted.",
        to=_home_of(row),
    )


@login_required
@require_POST
def delivery_replay(request: HttpRequest, delivery: str) -> HttpResponse:
    """Send a delivery once more."""
    actor = actor_of(request)
    row = selectors.delivery_for(actor, delivery)
    return act(
        request,
        lambda: services.replay(actor, row),
        done="It is sent once more under its old id.",
        to=reverse("route", args=[row.route_id]),
    )


def _home_of(row: Route) -> str:
    return reverse("team-notices", args=[row.team.slug]) if row.team else reverse("admin-notices")
