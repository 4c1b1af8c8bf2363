"""REST of levels, routes and deliveries."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.rest import NOTHING, PAGED, ApiView, page_of
from portal.notices import filters, selectors, services
from portal.notices import serializers as shapes
from portal.teams import selectors as teams
from portal.teams.idempotency import idempotent

TEAM = OpenApiParameter("team", str, description="slug of a team")


class Notices(ApiView):
    """How matters stand."""

    @extend_schema(
        parameters=[*PAGED, TEAM, OpenApiParameter("level", str, enum=shapes.LEVELS)],
        responses=page_of(shapes.LevelSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the levels of all matters that the actor may see, newest matter first."""
        rows = filters.levels(selectors.levels_for(self.actor), request.query_params)
        return self.page(rows, shapes.LevelSerializer)


class Routes(ApiView):
    """The ways by which people hear of levels."""

    @extend_schema(
        operation_id="webhooks_list",
        parameters=[*PAGED, TEAM],
        responses=page_of(shapes.RouteSerializer),
    )
    def get(self, request: Request) -> Response:
        """List routes, newest first."""
        rows = filters.of_team(selectors.routes_for(self.actor), request.query_params)
        return self.page(rows, shapes.RouteSerializer)

    @extend_schema(request=shapes.RouteInput, responses={201: shapes.CreatedRouteSerializer})
    @idempotent(secret=["signing_secret"])
    def post(self, request: Request) -> Response:
        """Make a route; a webhook's signing secret is in this answer and nowhere else."""
        wanted = self.valid(shapes.RouteInput)
        slug = wanted.pop("team", None)
        team = teams.team_for(self.actor, slug) if slug else None
        created = services.create_route(self.actor, team=team, **wanted)
        secret = created.signing_secret.reveal() if created.signing_secret else None
        shown = {**shapes.RouteSerializer(created.row).data, "signing_secret": secret}
        return Response(shown, status=status.HTTP_201_CREATED)


class OneRoute(ApiView):
    """One route."""

    @extend_schema(responses=shapes.RouteSerializer)
    def get(self, request: Request, route: str) -> Response:
        """Return a route."""
        return Response(shapes.RouteSerializer(selectors.route_for(self.actor, route)).data)

    @extend_schema(request=shapes.RoutePatch, responses=shapes.RouteSerializer)
    def patch(self, request: Request, route: str) -> Response:
        """Change a route."""
        row = selectors.route_for(self.actor, route)
        changed = services.update_route(self.actor, row, **self.valid(shapes.RoutePatch))
        return Response(shapes.RouteSerializer(changed).data)

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, route: str) -> Response:
        """Delete a route with its deliveries."""
        services.delete_route(self.actor, selectors.route_for(self.actor, route))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TestRoute(ApiView):
    """A test along one route."""

    __test__ = False  # not a test case

    @extend_schema(request=None, responses={201: shapes.DeliverySerializer})
    @idempotent()
    def post(self, request: Request, route: str) -> Response:
        """Send a test; its delivery tells how it went."""
        delivery = services.test_route(self.actor, selectors.route_for(self.actor, route))
        delivery.refresh_from_db()
        return Response(shapes.DeliverySerializer(delivery).data, status=status.HTTP_201_CREATED)


class Deliveries(ApiView):
    """What was sent along one route."""

    @extend_schema(
        parameters=[
            *PAGED,
            OpenApiParameter("state", str, enum=["pending", "delivered", "dead"]),
        ],
        responses=page_of(shapes.DeliverySerializer),
    )
    def get(self, request: Request, route: str) -> Response:
        """List a route's deliveries, newest first."""
        row = selectors.route_for(self.actor, route)
        rows = selectors.deliveries_for(self.actor, row)
        return self.page(filters.deliveries(rows, request.query_params), shapes.DeliverySerializer)


class Replay(ApiView):
    """One delivery, once more."""

    @extend_schema(request=None, responses=shapes.DeliverySerializer)
    def post(self, request: Request, delivery: str) -> Response:
        """Send a delivery again under its old id."""
        row = selectors.delivery_for(self.actor, delivery)
        return Response(shapes.DeliverySerializer(services.replay(self.actor, row)).data)
