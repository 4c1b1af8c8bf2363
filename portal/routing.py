"""Socket paths, behind the browser's origin and the session or a bearer token."""

from typing import Any

from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.urls import path, re_path

from clusters.routing import websocket_urlpatterns as of_clusters
from jobs.routing import websocket_urlpatterns as of_jobs
from portal.consumers import FeedConsumer
from portal.teams.sockets import is_bearer

websocket_urlpatterns: list[Any] = [
    path("ws/v1/feed", FeedConsumer.as_asgi(), name="ws-feed"),  # type: ignore[arg-type] # Channels' views
    *of_clusters,
    *of_jobs,
]


async def _refuse(_scope: Any, receive: Any, send: Any) -> None:
    """Refuse a path that has no socket: the handshake is answered with 403."""
    await receive()
    await send({"type": "websocket.close"})


_every_path: Any = re_path("", _refuse)  # type: ignore[arg-type] # an ASGI application
_sockets: Any = SessionMiddlewareStack(URLRouter([*websocket_urlpatterns, _every_path]))
_of_our_pages: Any = AllowedHostsOriginValidator(_sockets)


async def websocket(scope: Any, receive: Any, send: Any) -> None:
    """Serve a socket; the origin guards the session, and a bearer token needs no such guard."""
    await (_sockets if is_bearer(scope) else _of_our_pages)(scope, receive, send)
