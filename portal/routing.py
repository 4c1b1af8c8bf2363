"""Socket paths, behind the browser's origin and the session or a bearer token."""

from typing import Any

from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.urls import path

from clusters.routing import websocket_urlpatterns as of_clusters
from jobs.routing import websocket_urlpatterns as of_jobs
from portal.consumers import FeedConsumer

websocket_urlpatterns: list[Any] = [
    path("ws/v1/feed", FeedConsumer.as_asgi(), name="ws-feed"),  # type: ignore[arg-type] # Channels' views
    *of_clusters,
    *of_jobs,
]
websocket = AllowedHostsOriginValidator(SessionMiddlewareStack(URLRouter(websocket_urlpatterns)))
