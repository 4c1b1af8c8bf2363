"""Answers for requests that cannot be answered: as a page, or as problem+json below /api/."""

import logging
import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.core import errors, logs
from portal.core.pages import error_page

log = logging.getLogger(__name__)
UTF_8 = {"utf-8", "utf8", "us-ascii"}
AWAY = (OperationalError, ProgrammingError)


def refuse(
    request: HttpRequest, *, status: int, code: str, detail: str, title: str = ""
) -> HttpResponse:
    """Answer a request that is refused, in the shape that its path calls for."""
    if request.path.startswith("/api/"):
        body = errors.problem(
            status=status, title=title, code=code, detail=detail, request_id=logs.request_id()
        )
        response: HttpResponse = JsonResponse(body, status=status, content_type=errors.PROBLEM)
    else:
        response = error_page(request, status=status, title=title, detail=detail)
    if status == 503:
        response["Retry-After"] = "5"
    return response


class ErrorMiddleware:
    """Refuses what no view should see, and turns the errors of pages into pages.

    A path or query with a NUL byte and a form in another charset are 400, a body above the limit
    413, a database that cannot be reached or is not migrated yet 503, and Slipway's own errors
    what they say.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request, or refuse it at the door."""
        query = request.META.get("QUERY_STRING", "")
        if "\0" in request.path or "%00" in query or "\0" in query:
            detail = "An address never holds a NUL byte. Leave it out."
            return refuse(request, status=400, code="nul_byte", detail=detail)
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            detail = "The body is larger than 1 MiB. Send less at once."
            return refuse(request, status=413, code="too_large", detail=detail)
        charset = str((request.content_params or {}).get("charset", "utf-8")).lower()
        if (request.content_type or "").startswith("multipart/") and charset not in UTF_8:
            detail = "A form is read as UTF-8. Send it so, or leave the charset out."
            return refuse(request, status=400, code="bad_charset", detail=detail)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for a view that raised."""
        if isinstance(exception, AWAY):
            return away(request, exception)
        if isinstance(exception, errors.SlipwayError):
            code, detail = exception.code, exception.message
            return refuse(request, status=exception.status, code=code, detail=detail)
        return None


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:
    """Answer 400; a host that is not ours gets the remedy."""
    detail = "The browser sent something that Slipway cannot read. Go back and try again."
    if isinstance(exception, DisallowedHost):
        detail = (
            "This address is not the portal's own. Open it by SLIPWAY_PUBLIC_URL, "
            f"{settings.PUBLIC_URL}, or set that to the address you use."
        )
    return refuse(request, status=400, code="bad_request", detail=detail)


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:
    """Answer 403 where a view of Django or allauth refuses."""
    detail = "Your account may not do this. Ask an admin of the site."
    return refuse(request, status=403, code="not_allowed", detail=detail)


def not_found(request: HttpRequest, exception: Any = None) -> HttpResponse:
    """Answer 404 for a path that no view has."""
    detail = "The address may be mistyped, or the thing is not yours to see."
    return refuse(request, status=404, code="not_found", detail=detail)


def away(request: HttpRequest, error: BaseException) -> HttpResponse:
    """Answer 503 while the database cannot be reached or is not migrated."""
    log.error("database away", exc_info=error)
    detail = "The database cannot be reached or is being upgraded. Running jobs go on."
    return refuse(request, status=503, code="maintenance", detail=detail)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 when a middleware found no database; the log has the traceback."""
    error = sys.exception()
    if isinstance(error, AWAY):
        return away(request, error)
    detail = "Nothing of yours was changed half-way. Try again; if it stays, tell an admin the id."
    return refuse(request, status=500, code="server_error", detail=detail)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that was sent without a fresh CSRF token."""
    log.warning("csrf refused", extra={"reason": reason, "path": request.path})
    return refuse(
        request,
        status=403,
        code="csrf",
        title="This page was open too long",
        detail="Its security token no longer fits your session. Load the page again, then repeat.",
    )
