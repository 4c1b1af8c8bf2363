"""Figures for Prometheus: requests by route, and work that is due. Names begin with `slipway_`."""

import time
from collections.abc import Callable, Iterator

from django.apps import apps
from django.db.models import Count, F, Max
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from portal.core.turns import Turn

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REQUESTS = Counter(
    "slipway_http_requests", "Requests by route, method and status.", ["route", "method", "status"]
)
SECONDS = Histogram(
    "slipway_http_request_duration_seconds",
    "Seconds until the answer began, by route and method.",
    ["route", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


class MetricsMiddleware:
    """Counts every request and takes its time; stands before all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        begun = time.perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        route = (match.view_name or match.route) if match else "none"
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(route, method, response.status_code).inc()
        SECONDS.labels(route, method).observe(time.perf_counter() - begun)
        return response


def due_work() -> Iterator[GaugeMetricFamily]:
    """Yield how many rows of each kind are due, and for how many seconds the oldest has been."""
    rows = GaugeMetricFamily("slipway_due_rows", "Rows that wait for a pass.", labels=["kind"])
    age = GaugeMetricFamily(
        "slipway_oldest_due_seconds", "Seconds since the oldest was due.", labels=["kind"]
    )
    for model in apps.get_models():
        if issubclass(model, Turn):
            due = model._base_manager.filter(due_at__lte=Now())
            found = due.aggregate(count=Count("pk"), oldest=Max(Now() - F("due_at")))
            kind = model._meta.label_lower
            rows.add_metric([kind], found["count"])
            age.add_metric([kind], found["oldest"].total_seconds() if found["oldest"] else 0.0)
    yield rows
    yield age
