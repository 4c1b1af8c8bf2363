"""Socket paths of clusters."""

from django.urls import URLPattern

websocket_urlpatterns: list[URLPattern] = []
