"""Paths of notices: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from portal.notices import api as rest
from portal.notices import views

pages: list[URLPattern | URLResolver] = [
    path("notices", views.raised, name="notices"),
    path("notices/routes/<slug:route>", views.route, name="route"),
    path("notices/routes/<slug:route>/test", views.route_test, name="route-test"),
    path("notices/routes/<slug:route>/delete", views.route_delete, name="route-delete"),
    path(
        "notices/deliveries/<slug:delivery>/replay", views.delivery_replay, name="delivery-replay"
    ),
    path("teams/<slug:slug>/notices", views.team_routes, name="team-notices"),
    path("admin/notices", views.site_routes, name="admin-notices"),
]
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
