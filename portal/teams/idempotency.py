"""`Idempotency-Key`: the first answer to a creating request is given again for 24 hours.

The record is written in the transaction of the creation itself, so both exist or neither does. A
twin that comes meanwhile waits on the unique index for up to 5 s.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from psycopg import errors as pg
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.errors import PROBLEM, Conflict, Invalid
from portal.teams.models import IdempotencyRecord

WAIT_SECONDS = 5
PATH_MOST = 500
NEVER_KEPT = frozenset({401, 403, 429})
Handler = Callable[..., Response]


def idempotent(*, secret: Sequence[str] = ()) -> Callable[[Handler], Handler]:
    """Decorate a view's creating `post`; `secret` names members that are never kept."""

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def post(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            key = request.headers.get("Idempotency-Key")
            if key is None:
                return handler(view, request, *args, **kwargs)
            return _once(view, request, _checked(key), secret, handler, args, kwargs)

        return post

    return decorate


@transaction.atomic
def once(user: Any, *, path: str, key: str, make: Callable[[], str]) -> str:
    """Make something for a page's form, which two tabs or a double click may send twice.

    `key` came with the form; the second time it returns the id of what the first has made. Raises
    what `make` raises, and then nothing is kept.
    """
    place = {"user": user, "method": "FORM", "path": path[:PATH_MOST], "key": _checked(key)}
    record = _claim(place, hashlib.sha256(key.encode()).hexdigest())
    if record is None:
        first: dict[str, str] = IdempotencyRecord.objects.get(**place).body or {}
        return first["id"]
    made = make()
    IdempotencyRecord.objects.filter(pk=record.pk).update(status=201, body={"id": made})
    return made


def _checked(key: str) -> str:
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        message = "An Idempotency-Key has 1 to 255 printable ASCII characters."
        raise Invalid.at("Idempotency-Key", message)
    return key


def _once(
    view: Any,
    request: Request,
    key: str,
    secret: Sequence[str],
    handler: Handler,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Response:
    path = request.path
    if len(path) > PATH_MOST:  # then it is none of ours, and the handler says so
        return handler(view, request, *args, **kwargs)
    place = {"user": request.user, "method": request.method, "path": path, "key": key}
    body = json.dumps(request.data, sort_keys=True, separators=(",", ":"))
    body_hash = hashlib.sha256(body.encode()).hexdigest()
    with transaction.atomic():
        record = _claim(place, body_hash)
        if record is None:
            return _first_answer(place, body_hash)
        try:
            with transaction.atomic():
                response = handler(view, request, *args, **kwargs)
        except DatabaseError:
            raise
        except Exception as error:
            response = view.handle_exception(error)
        if response.status_code >= 500 or response.status_code in NEVER_KEPT:
            transaction.set_rollback(True)
            return response
        kept = json.loads(JSONRenderer().render(response.data))
        if isinstance(kept, dict):
            kept = {name: value for name, value in kept.items() if name not in secret}
        IdempotencyRecord.objects.filter(pk=record.pk).update(
            status=response.status_code, body=kept
        )
    return response


def _claim(place: dict[str, Any], body_hash: str) -> IdempotencyRecord | None:
    """Insert the record, or return `None` when there is one; waits for a twin in progress."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(**place, body_hash=body_hash)
    except IntegrityError:
        return None
    except OperationalError as error:
        if isinstance(error.__cause__, pg.LockNotAvailable):
            raise Conflict(
                "in_progress", "The same request is still being worked on. Try again in a moment."
            ) from error
        raise


def _first_answer(place: dict[str, Any], body_hash: str) -> Response:
    record = IdempotencyRecord.objects.get(**place)
    if record.body_hash != body_hash:
        raise Conflict(
            "idempotency_mismatch",
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        )
    headers = {"Idempotent-Replayed": "true"}
    kind = PROBLEM if record.status is not None and record.status >= 400 else None
    return Response(record.body, status=record.status, headers=headers, content_type=kind)
