"""REST of quotas: the limits are a team's, and only jobs can tell their use."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import selectors as jobs
from jobs import serializers as shapes
from jobs.values import Usage
from portal.core.errors import Invalid
from portal.core.rest import ApiView
from portal.teams import selectors as teams
from portal.teams.models import Limit, Team
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
