"""The ASGI application: pages and REST over HTTP, feeds over websockets."""

import os
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

from portal.core.bodies import bounded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")  # noqa: TID251 - Django's own
http = get_asgi_application()

from jobs import ingest  # noqa: E402 - needs the apps that the line above sets up
from portal.routing import websocket  # noqa: E402

_pages = bounded(http, most_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


async def _http(scope: Any, receive: Any, send: Any) -> None:
    """Let agents in by their own door, everybody else by Django's."""
    is_agent = scope["path"].startswith(ingest.PREFIX)
    await (ingest.application if is_agent else _pages)(scope, receive, send)


application = ProtocolTypeRouter(
    {
        "http": _http,
        "websocket": websocket,
    }
)
