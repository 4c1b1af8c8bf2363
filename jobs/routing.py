"""Socket paths of jobs."""

from django.urls import URLPattern

websocket_urlpatterns: list[URLPattern] = []
