"""Tells whether the portal is alive (`/healthz`) and able to work (`/readyz`)."""

import logging
import time
from collections.abc import Callable
from threading import Lock

import redis
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.celery import app
from portal.core import ids

log = logging.getLogger(__name__)
ECHO_SECONDS = 3.0
CACHED_SECONDS = 5.0
_ECHO_KEY = "slipway:echo:{}"
_lock = Lock()
_last: tuple[float, dict[str, str]] | None = None


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that this process serves requests; touches nothing else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every part works, else 503; names each part. Cached for 5 s a process."""
    global _last
    with _lock:
        now = time.monotonic()
        if _last is None or now - _last[0] > CACHED_SECONDS or not _is_ready(_last[1]):
            _last = (now, {name: _try(check) for name, check in CHECKS.items()})
        parts = _last[1]
    ready = _is_ready(parts)
    return JsonResponse(
        {"status": "ready" if ready else "not ready", "parts": parts}, status=200 if ready else 503
    )


def answer(nonce: str) -> None:
    """Say from within a worker that a message came through."""
    key = _ECHO_KEY.format(nonce)
    with _redis() as client:
        client.rpush(key, "1")
        client.expire(key, 30)


def _is_ready(parts: dict[str, str]) -> bool:
    return all(word == "ok" for word in parts.values())


def _try(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:
        log.warning("not ready", extra={"error": str(error)})
        return type(error).__name__


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _migrations() -> str:
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(waiting)} not applied" if waiting else "ok"


def _store() -> str:
    with _redis() as client:
        client.ping()
    return "ok"


def _queue() -> str:
    """Send a message and wait until a worker has answered it."""
    nonce = ids.new()
    app.send_task("portal.echo", [nonce], queue="reconcile", retry=False, expires=10)
    with _redis() as client:
        return (
            "ok" if client.blpop([_ECHO_KEY.format(nonce)], timeout=ECHO_SECONDS) else "no answer"
        )


def _redis() -> "redis.Redis":
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=ECHO_SECONDS + 1
    )


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "redis": _store,
    "queue": _queue,
}
