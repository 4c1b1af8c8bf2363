"""Questions about notices; each that a person asks starts from the actor."""

from django.db.models import Q, QuerySet

from portal.core.errors import NotFound
from portal.notices.models import Delivery, Level, Route
from portal.notices.values import LevelName
from portal.teams import selectors as teams
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission


def levels_for(actor: Actor) -> QuerySet[Level]:
    """Return the levels of the actor's teams, and of the site for admins and auditors."""
    return Level.objects.select_related("team").filter(_visible(actor)).order_by("-pk")


def raised_for(actor: Actor) -> QuerySet[Level]:
    """Return the levels that are not `ok`, the newest change first."""
    return levels_for(actor).exclude(level=LevelName.OK).order_by("-since", "-pk")


def routes_for(actor: Actor) -> QuerySet[Route]:
    """Return the routes of the actor's teams, and of the site for admins and auditors."""
    routes = Route.objects.select_related("team", "created_by").defer("target", "signing")
    return routes.filter(_visible(actor)).order_by("-pk")


def routes_of(actor: Actor, team: Team | None) -> list[Route]:
    """Return the routes of one team, or of the site, by name."""
    return list(routes_for(actor).filter(team=team).order_by("name")[:200])


def raised_of(actor: Actor, team: Team | None) -> list[Level]:
    """Return what is not well in one team, or on the site."""
    return list(raised_for(actor).filter(team=team)[:100])


def route_for(actor: Actor, route_id: str) -> Route:
    """Return a route; raise `NotFound` when it is not the actor's to see."""
    route = routes_for(actor).filter(pk=route_id).first()
    if route is None:
        raise NotFound("not_found", "There is no such route, or it is not yours to see.")
    return route


def deliveries_for(actor: Actor, route: Route) -> QuerySet[Delivery]:
    """Return the route's deliveries, newest first."""
    return _deliveries(actor).filter(route=route)


def delivery_for(actor: Actor, delivery_id: str) -> Delivery:
    """Return a delivery; raise `NotFound` when it is not the actor's to see."""
    delivery = _deliveries(actor).filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFound("not_found", "There is no such delivery, or it is not yours to see.")
    return delivery


def level_of(key: str, *, team: Team | None = None) -> LevelName:
    """Return how a matter stands; one that nobody has spoken of is `ok`."""
    found = Level.objects.filter(team=team, key=key).values_list("level", flat=True).first()
    return LevelName(found or LevelName.OK)


def _deliveries(actor: Actor) -> QuerySet[Delivery]:
    deliveries = Delivery.objects.select_related("route", "route__team")
    return deliveries.filter(_visible(actor, "route__")).order_by("-pk")


def _visible(actor: Actor, prefix: str = "") -> Q:
    seen = Q(**{f"{prefix}team__in": teams.teams_for(actor)})
    if actor.can(Permission.SITE_VIEW):
        seen |= Q(**{f"{prefix}team": None})
    return seen
