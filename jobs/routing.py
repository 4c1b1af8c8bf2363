"""Socket paths of jobs."""

from django.urls import URLPattern, path

from jobs.consumers import LogConsumer, MetricsConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/v1/jobs/<slug:job>/logs", LogConsumer.as_asgi(), name="ws-job-logs"),  # type: ignore[arg-type] # Channels' views
    path("ws/v1/jobs/<slug:job>/metrics", MetricsConsumer.as_asgi(), name="ws-job-metrics"),  # type: ignore[arg-type] # Channels' views
]
