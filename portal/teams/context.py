"""What the shell of every page needs to know."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from portal.core.pages import THEMES
from portal.teams import selectors
from portal.teams.roles import Permission


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return the actor, the teams to switch between, and the theme of the cookie; one query."""
    theme = request.COOKIES.get("theme", "")
    actor = getattr(request, "actor", None)
    context: dict[str, Any] = {
        "theme": theme if theme in THEMES else "",
        "oidc_name": settings.OIDC_NAME if settings.SOCIALACCOUNT_PROVIDERS else "",
        "passkeys": settings.MFA_PASSKEY_LOGIN_ENABLED,
        "has_mail": settings.HAS_MAIL,
        "actor": actor,
    }
    if actor:
        teams = list(selectors.teams_for(actor).order_by("name")[:50])
        context["shell_teams"] = [
            {"team": team, "role": selectors.role_in(actor, team)} for team in teams
        ]
        context["sees_site"] = actor.can(Permission.SITE_VIEW)
        context["edits_site"] = actor.can(Permission.SITE_EDIT)
    return context
