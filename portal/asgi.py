"""The ASGI application: pages and REST over HTTP, feeds over websockets."""

import os

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

from portal.core.bodies import bounded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")  # noqa: TID251 - Django's own
http = get_asgi_application()

from portal.routing import websocket  # noqa: E402 - needs the apps that the line above sets up

application = ProtocolTypeRouter(
    {
        "http": bounded(http, most_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
        "websocket": websocket,
    }
)
