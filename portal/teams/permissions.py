"""What a token must carry before a REST view is even asked."""

from typing import TYPE_CHECKING

from rest_framework import permissions
from rest_framework.request import Request

from portal.teams.roles import Scope

if TYPE_CHECKING:
    from rest_framework.views import APIView


class ScopeAllows(permissions.BasePermission):
    """Reading takes the scope `read`, anything else `write`; a session has both."""

    code = "not_allowed"
    message = "The token may not do this: make one with the scope for it."

    def has_permission(self, request: Request, view: "APIView") -> bool:  # noqa: ARG002 - as DRF calls it
        """Tell whether the request's token, if there is one, carries the scope of its method."""
        actor = getattr(request, "actor", None)
        needed = Scope.READ if request.method in permissions.SAFE_METHODS else Scope.WRITE
        return actor is None or actor.has_scope(needed)
