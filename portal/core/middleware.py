"""Answers for requests that cannot be answered: the database is away, CSRF does not match."""

import logging
from collections.abc import Callable

from django.db import OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from portal.core import errors, logs

log = logging.getLogger(__name__)
PROBLEM = "application/problem+json"


def _wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def problem(
    request: HttpRequest, *, status: int, title: str, code: str, detail: str
) -> HttpResponse:
    """Answer an API path with problem+json and a page with the page of that status."""
    if _wants_json(request):
        body = errors.problem(
            status=status, title=title, code=code, detail=detail, request_id=logs.request_id()
        )
        return JsonResponse(body, status=status, content_type=PROBLEM)
    context = {"title": title, "detail": detail, "request_id": logs.request_id()}
    return render(request, f"{status}.html", context, status=status)


class MaintenanceMiddleware:
    """Turns a database that cannot be reached, or is not migrated yet, into 503 with Retry-After."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer when a view could not reach its tables."""
        if not isinstance(exception, (OperationalError, ProgrammingError)):
            return None
        log.exception("database away")
        return unavailable(request)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Answer 503: nothing was lost, try again soon."""
    response = problem(
        request,
        status=503,
        title="Slipway is away for a moment",
        code="maintenance",
        detail="The database cannot be reached or is being upgraded. Running jobs go on.",
    )
    response["Retry-After"] = "5"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that was sent without a fresh CSRF token."""
    log.warning("csrf refused", extra={"reason": reason, "path": request.path})
    return problem(
        request,
        status=403,
        title="This page was open too long",
        code="csrf",
        detail="Its security token no longer fits your session. Load the page again, then repeat.",
    )
