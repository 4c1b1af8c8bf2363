"""What every REST view shares: problem+json, keyset pages, throttles, a strict JSON parser."""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.core import errors, logs

PAGE, PAGE_MOST = 50, 500
LIMIT_PARAMETER = OpenApiParameter("limit", int, description=f"rows a page, 1 to {PAGE_MOST}")
CURSOR_PARAMETER = OpenApiParameter("cursor", str, description="from `next` or `previous`")
PAGED = [LIMIT_PARAMETER, CURSOR_PARAMETER]
NOTHING = OpenApiResponse(description="Done; there is nothing to say.")


class ApiView(APIView):
    """A view whose requests carry an actor; lists go through `page`."""

    @property
    def actor(self) -> Any:
        """The `portal.teams.roles.Actor` that authentication has set."""
        return self.request.actor  # type: ignore[attr-defined] # set by authentication

    def valid(self, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """Return the body as the shape reads it; raise 400 with a pointer to every fault."""
        serializer = shape(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def page(
        self,
        rows: QuerySet[Any],
        serializer: type[serializers.BaseSerializer[Any]],
        *,
        order: str = "-pk",
        show: Callable[[Any], Any] | None = None,
        **context: Any,
    ) -> Response:
        """Answer one page of rows in the order of a unique column, `-` for descending."""
        page = KeysetPage(self.request, rows, order=order)
        items = [show(row) for row in page.rows] if show else page.rows
        data = serializer(items, many=True, context={"request": self.request, **context}).data
        return Response({"results": data, "next": page.next, "previous": page.previous})


class Strict(serializers.Serializer[Any]):
    """A body in which a mistyped name is an error, not a wish that nobody hears."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the body. Raises `ValidationError` at each name that is no field."""
        unknown = set(data) - set(self.fields) if isinstance(data, dict) else ()
        if unknown:
            known = ", ".join(self.fields)
            message = f"There is no such field; known are {known}."
            raise serializers.ValidationError({name: [message] for name in sorted(unknown)})
        return super().to_internal_value(data)


class KeysetPage:
    """One page: rows, and the addresses of the next and the previous page.

    The cursor holds the last row's key, the direction and the filters that it was made for, signed;
    with other filters it is refused. A row that leaves the filter is skipped, none comes twice.
    """

    def __init__(self, request: Request, rows: QuerySet[Any], *, order: str) -> None:
        self.request, self.order = request, order
        self.column = order.removeprefix("-")
        self.filters = sorted(
            (key, value)
            for key, values in request.query_params.lists()
            if key not in {"cursor", "limit"}
            for value in values
        )
        limit = self._limit()
        key, back = self._cursor()
        descending = order.startswith("-") != back
        if key is not None:
            rows = rows.filter(**{f"{self.column}__{'lt' if descending else 'gt'}": key})
        found = list(rows.order_by(("-" if descending else "") + self.column)[: limit + 1])
        more, found = len(found) > limit, found[:limit]
        self.rows = found[::-1] if back else found
        self.next = self._link(self.rows[-1], back=False) if self.rows and (more or back) else None
        came_from = key is not None and not back
        self.previous = (
            self._link(self.rows[0], back=True)
            if self.rows and (came_from or (back and more))
            else None
        )

    def _limit(self) -> int:
        text = self.request.query_params.get("limit", str(PAGE))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= PAGE_MOST):
            raise errors.Invalid.at("limit", f"Give a whole number from 1 to {PAGE_MOST}.")
        return int(text)

    def _cursor(self) -> tuple[Any, bool]:
        text = self.request.query_params.get("cursor")
        if text is None:
            return None, False
        try:
            path, order, filters, key, back = signing.loads(text, salt="cursor")
            if [path, order, [tuple(f) for f in filters]] != [
                self.request.path,
                self.order,
                self.filters,
            ]:
                raise ValueError("made for another list")
        except (signing.BadSignature, ValueError, TypeError) as error:
            message = "This cursor belongs to another list or other filters. Begin without it."
            raise errors.Invalid.at("cursor", message, code="bad_cursor") from error
        return key, bool(back)

    def _link(self, row: Any, *, back: bool) -> str:
        key: Any = row
        for name in self.column.split("__"):
            key = getattr(key, name)
        cursor = signing.dumps(
            [self.request.path, self.order, self.filters, key, back], salt="cursor"
        )
        query = self.request.query_params.copy()
        query["cursor"] = cursor
        return f"{settings.PUBLIC_URL}{self.request.path}?{query.urlencode()}"


def page_of(serializer: type[serializers.BaseSerializer[Any]]) -> Any:
    """Return the schema of a page of these rows."""
    return inline_serializer(
        f"Page{serializer.__name__.removesuffix('Serializer')}",
        {
            "results": serializer(many=True),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
        },
    )


def problem_response(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn an error into an `application/problem+json` response (RFC 9457), or `None` for a 500."""
    headers: dict[str, str] = {}
    facts: Mapping[str, Any] = {}
    fields: tuple[errors.FieldError, ...] = ()
    match exc:
        case errors.SlipwayError():
            number, code, detail = exc.status, exc.code, exc.message
            facts, fields = exc.facts, exc.errors
        case exceptions.ValidationError():
            number, code, detail = 400, "invalid", "Some fields are not valid; nothing was changed."
            fields = tuple(_field_errors(exc.detail, ""))
        case exceptions.APIException():
            number, code, detail = exc.status_code, str(exc.get_codes()), str(exc.detail)
            wait: float | None = getattr(exc, "wait", None)
            if wait is not None:
                headers["Retry-After"] = str(int(wait) + 1)
            if challenge := getattr(exc, "auth_header", None):
                headers["WWW-Authenticate"] = challenge
        case Http404():
            number, code, detail = 404, "not_found", "There is nothing here, or it is not yours."
        case PermissionDenied():
            number, code, detail = 403, "not_allowed", str(exc) or "You may not do this."
        case OperationalError():
            number, code = 503, "maintenance"
            detail = "The database cannot be reached. Nothing was changed; try again in a moment."
        case _:
            return None
    if number == 503:
        headers["Retry-After"] = "5"
    body = errors.problem(
        status=number,
        code=code,
        detail=detail,
        request_id=logs.request_id(),
        facts=facts,
        errors=fields,
    )
    return Response(body, status=number, headers=headers, content_type=errors.PROBLEM)


def _field_errors(detail: Any, pointer: str) -> "list[errors.FieldError]":
    """Flatten the errors of a serializer into JSON pointers (RFC 6901)."""
    if isinstance(detail, Mapping):
        found: list[errors.FieldError] = []
        for key, value in detail.items():
            name = str(key).replace("~", "~0").replace("/", "~1")
            path = pointer if key == "non_field_errors" else f"{pointer}/{name}"
            found += _field_errors(value, path)
        return found
    if isinstance(detail, list):
        found = []
        for index, value in enumerate(detail):
            nested = isinstance(value, Mapping | list)
            found += _field_errors(value, f"{pointer}/{index}" if nested else pointer)
        return found
    return [errors.FieldError(pointer=pointer, message=str(detail))]
