"""Paths of notices: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from portal.notices import api as rest

pages: list[URLPattern | URLResolver] = []
api: list[URLPattern | URLResolver] = [
    path("notices", rest.Notices.as_view(), name="api-notices"),
    path("webhooks", rest.Routes.as_view(), name="api-webhooks"),
    path("webhooks/<slug:route>", rest.OneRoute.as_view(), name="api-webhook"),
    path("webhooks/<slug:route>/test", rest.TestRoute.as_view(), name="api-webhook-test"),
    path(
        "webhooks/<slug:route>/deliveries",
        rest.Deliveries.as_view(),
        name="api-webhook-deliveries",
    ),
    path("deliveries/<slug:delivery>/replay", rest.Replay.as_view(), name="api-replay"),
]
