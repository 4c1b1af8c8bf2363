"""Gives each request its actor, lazily, and notes where a browser session is in use."""

import hashlib
from collections.abc import Callable
from typing import Final

from allauth.usersessions.models import UserSession
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from portal.teams import selectors
from portal.teams.roles import Actor

EXACT_SECONDS: Final = 60


def actor_of(request: HttpRequest) -> Actor:
    """Return who asks for a page that demands a sign-in."""
    actor: Actor = request.actor  # type: ignore[attr-defined] # ours
    return actor


class ActorMiddleware:
    """Sets `request.actor`: an `Actor` for signed-in people, else `None`; no query until asked."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request with its actor set."""
        if request.user.is_authenticated:
            user = request.user
            request.actor = SimpleLazyObject(lambda: selectors.actor_of(user))  # type: ignore[attr-defined] # ours
        else:
            request.actor = None  # type: ignore[attr-defined] # ours
        return self.get_response(request)


class SessionActivityMiddleware:
    """Notes address, browser and instant of a session in use, exact to a minute.

    allauth's own does so in five statements on every request; so reading a page writes nothing.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        if request.user.is_authenticated:
            key = hashlib.sha256(str(request.session.session_key).encode()).hexdigest()
            if cache.add(f"session-in-use:{key}", 1, timeout=EXACT_SECONDS):
                UserSession.objects.create_from_request(request)
        return self.get_response(request)
