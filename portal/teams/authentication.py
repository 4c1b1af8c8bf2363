"""How a REST request says who asks: a bearer token, or the browser's session with CSRF."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from portal.teams import selectors
from portal.teams.models import ApiToken, User
from portal.teams.services import tokens


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer slw_…`; sets `request.actor`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return owner and token, `None` without the header, 401 for an unusable token."""
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        token = selectors.live_token(tokens.digest_of(text.strip()))
        if token is None:
            raise exceptions.AuthenticationFailed(
                "The token is unknown, expired or revoked. Make a new one on your account page.",
                code="bad_token",
            )
        tokens.note_use(token)
        actor = selectors.actor_of(token.user, token=token)
        request.actor = actor  # type: ignore[attr-defined] # ours
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return 'Bearer realm="slipway"'


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session; writing requests need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        """Return the signed-in person, or `None`."""
        found = super().authenticate(request)
        if found is not None:
            request.actor = selectors.actor_of(found[0])  # type: ignore[attr-defined] # ours
        return found


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # untyped
    """Tells the OpenAPI document of bearer tokens."""

    target_class = "portal.teams.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": f"{tokens.PREFIX}…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # untyped
    """Tells the OpenAPI document of browser sessions."""

    target_class = "portal.teams.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
