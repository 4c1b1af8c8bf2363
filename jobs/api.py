"""REST of jobs: the routes that only jobs can answer."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import selectors as jobs
from jobs import serializers as shapes
from jobs.services import definitions
from jobs.values import Usage
from portal.core.errors import Invalid, NotFound
from portal.core.rest import NOTHING, PAGED, ApiView, page_of
from portal.teams import selectors as teams
from portal.teams.idempotency import idempotent
from portal.teams.models import Limit, Team
from portal.teams.roles import Actor
from portal.teams.services import limits


class Quotas(ApiView):
    """What a team may use, and what it uses."""

    @extend_schema(responses=shapes.QuotasSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Return the limits, null being none, and beside them what is used."""
        return self._shown(teams.team_for(self.actor, slug))

    @extend_schema(request=shapes.LimitsSerializer, responses=shapes.QuotasSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the limits that the body names; null lifts one, what is absent stays."""
        if not isinstance(request.data, dict):
            raise Invalid("invalid", 'Send an object of limits, such as {"gpus": 8}.')
        team = teams.team_for(self.actor, slug)
        limits.set_limits(self.actor, team, wanted=request.data)
        return self._shown(team)

    def _shown(self, team: Team) -> Response:
        limit, used = teams.limit_for(self.actor, team), jobs.usage_of(team)
        return Response({**_counts(limit), "used": _counts(used)})


def _counts(of: Limit | Usage) -> dict[str, Any]:
    """Return limits or their use, in the shape that PUT takes."""
    hours = of.gpu_hours_per_month
    return {
        "gpus": of.gpus,
        "gpus_by_type": dict(of.gpus_by_type),
        "nodes": of.nodes,
        "running_jobs": of.running_jobs,
        "gpu_hours_per_month": None if hours is None else f"{hours.normalize():f}",
    }


class Definitions(ApiView):
    """Job definitions of the actor's teams, and the built-in ones."""

    @extend_schema(
        parameters=[
            *PAGED,
            OpenApiParameter("team", str, description="a team's slug"),
            OpenApiParameter("slug", str),
        ],
        responses=page_of(shapes.DefinitionSerializer),
    )
    def get(self, request: Request) -> Response:
        """List definitions, newest first."""
        rows = jobs.with_newest(jobs.definitions_for(self.actor))
        if team := request.query_params.get("team"):
            rows = rows.filter(team=teams.team_for(self.actor, team))
        if slug := request.query_params.get("slug"):
            rows = rows.filter(slug=slug)
        return self.page(rows, shapes.DefinitionSerializer)

    @extend_schema(request=shapes.DefinitionInput, responses={201: shapes.DefinitionSerializer})
    @idempotent()
    def post(self, request: Request) -> Response:
        """Create a definition; managers of the team only."""
        wanted = self.valid(shapes.DefinitionInput)
        team = teams.team_for(self.actor, wanted.pop("team"))
        made = definitions.create_definition(self.actor, team, **wanted)
        return Response(_shown(self.actor, made.pk), status=status.HTTP_201_CREATED)


class OneDefinition(ApiView):
    """One job definition."""

    @extend_schema(responses=shapes.DefinitionSerializer)
    def get(self, request: Request, definition: str) -> Response:
        """Return a definition with its newest version."""
        return Response(_shown(self.actor, definition))

    @extend_schema(request=shapes.DefinitionPut, responses=shapes.DefinitionSerializer)
    def put(self, request: Request, definition: str) -> Response:
        """Save a new version; jobs that run keep theirs."""
        row = jobs.definition_for(self.actor, definition)
        definitions.save_version(self.actor, row, **self.valid(shapes.DefinitionPut))
        return Response(_shown(self.actor, definition))

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, definition: str) -> Response:
        """Take a definition out of use."""
        definitions.delete_definition(self.actor, jobs.definition_for(self.actor, definition))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Versions(ApiView):
    """Versions of one job definition."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.VersionSerializer))
    def get(self, request: Request, definition: str) -> Response:
        """List versions, newest first."""
        row = jobs.definition_for(self.actor, definition)
        return self.page(jobs.versions_for(self.actor, row), shapes.VersionSerializer)


def _shown(actor: Actor, definition_id: str) -> Any:
    row = jobs.with_newest(jobs.definitions_for(actor)).filter(pk=definition_id).first()
    if row is None:
        raise NotFound("not_found", "There is no such definition, or it is not yours to see.")
    return shapes.DefinitionSerializer(row).data
