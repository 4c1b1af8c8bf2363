"""Gives each page request its actor, lazily."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from portal.teams import selectors


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
