"""The ASGI application: pages and REST over HTTP, feeds over websockets."""

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")  # noqa: TID251 - Django's own
http = get_asgi_application()

from portal.routing import websocket  # noqa: E402 - needs the apps that the line above sets up

application = ProtocolTypeRouter({"http": http, "websocket": websocket})
