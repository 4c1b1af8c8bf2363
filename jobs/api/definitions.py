"""REST of job definitions and their versions."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import selectors as jobs
from jobs import serializers as shapes
from jobs.services import definitions
from portal.core.errors import NotFound
from portal.core.rest import NOTHING, PAGED, ApiView, page_of
from portal.teams import selectors as teams
from portal.teams.idempotency import idempotent
from portal.teams.roles import Actor


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
