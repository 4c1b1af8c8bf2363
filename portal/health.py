"""Tells whether the portal is alive (`/healthz`), able to work (`/readyz`), and how it does."""

import logging
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import REGISTRY, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from portal.celery import app
from portal.core import ids
from portal.core.metrics import due_work
from portal.core.rest import ApiView
from portal.teams.roles import Permission
from portal.teams.services.access import require

log = logging.getLogger(__name__)
ECHO_SECONDS = 3.0
PING_SECONDS = 1.0
CACHED_SECONDS = 5.0
RETRY_SECONDS = 1.0
QUEUES = ("reconcile", "stream", "notify")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
SWEEPS_MISSED = 6
_ECHO_KEY = "slipway:echo:{}"
_TICK_KEY = "slipway:tick"
_started = time.monotonic()
_lock = Lock()
_last: tuple[float, dict[str, str]] | None = None


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that this process serves requests; touches nothing else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every part works, else 503; names each part. Cached for 5 s a process."""
    parts = _parts()
    ready = _is_ready(parts)
    return JsonResponse(
        {"status": "ready" if ready else "not ready", "parts": parts}, status=200 if ready else 503
    )


class _AnyFormat(BaseContentNegotiation):
    """Lets the exposition format, not REST, read the Accept header."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class Metrics(ApiView):
    """`/metrics` in OpenMetrics for Prometheus, for admins and auditors."""

    schema = None
    content_negotiation_class = _AnyFormat

    def get(self, request: Request) -> HttpResponse:
        """Answer with this process's figures, the queues, the due work and the parts."""
        require(self.actor, Permission.SITE_VIEW)
        encode, kind = choose_encoder(request.headers.get("Accept", OPENMETRICS))
        return HttpResponse(encode(REGISTRY), content_type=kind)


class _Collector:
    """Asks for what only the stores know, when Prometheus asks."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        parts = _parts()
        ready = GaugeMetricFamily("slipway_ready", "1 when the part works.", labels=["part"])
        for name, word in parts.items():
            ready.add_metric([name], float(word == "ok"))
        yield ready
        yield from due_work()
        if parts["redis"] == "ok":
            depth = GaugeMetricFamily("slipway_queue_depth", "Waiting messages.", labels=["queue"])
            prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
            with _redis() as client:
                for queue in QUEUES:
                    depth.add_metric([queue], client.llen(f"{prefix}{queue}"))
            yield depth


REGISTRY.register(_Collector())


def answer(nonce: str) -> None:
    """Say from within a worker that a message came through."""
    key = _ECHO_KEY.format(nonce)
    with _redis() as client:
        client.rpush(key, "1")
        client.expire(key, 30)


def tick() -> None:
    """Say from within a worker that beat sends its sweeps."""
    with _redis() as client:
        client.set(_TICK_KEY, "1", ex=int(SWEEPS_MISSED * settings.SWEEP_SECONDS))


def _parts() -> dict[str, str]:
    """Return each part → `ok` or what is wrong; asked again after 5 s, or 1 s when one is not."""
    global _last
    with _lock:
        now = time.monotonic()
        if _last is not None:
            kept = CACHED_SECONDS if _is_ready(_last[1]) else RETRY_SECONDS
        if _last is None or now - _last[0] > kept:
            _last = (time.monotonic(), _asked())
        return _last[1]


def _asked() -> dict[str, str]:
    parts: dict[str, str] = {}
    for name, check in CHECKS.items():
        base = NEEDS.get(name)
        parts[name] = _try(check) if base is None or parts[base] == "ok" else f"{base} is away"
    return parts


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


def _sweeps() -> str:
    """Tell whether beat has sent a sweep lately; a young process gives it time."""
    patience = SWEEPS_MISSED * settings.SWEEP_SECONDS
    with _redis() as client:
        if client.exists(_TICK_KEY) or time.monotonic() - _started < patience:
            return "ok"
    return f"none for {patience} s; is beat running?"


def _store() -> str:
    with _redis(seconds=PING_SECONDS) as client:
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


def _redis(*, seconds: float = ECHO_SECONDS + 1) -> "redis.Redis":
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=seconds
    )


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "redis": _store,
    "queue": _queue,
    "sweeps": _sweeps,
}
# A part that is not asked while the one below it is away.
NEEDS = {"migrations": "database", "queue": "redis", "sweeps": "redis"}
