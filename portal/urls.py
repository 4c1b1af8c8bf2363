"""Every path of the portal; rooms bring their own pages and REST."""

from django.urls import include, path

from clusters import urls as clusters
from jobs import urls as jobs
from portal import health, views
from portal.notices import urls as notices
from portal.teams import urls as teams

handler400 = "portal.core.middleware.bad_request"
handler403 = "portal.core.middleware.forbidden"
handler404 = "portal.core.middleware.not_found"
handler500 = "portal.core.middleware.server_error"

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.Metrics.as_view(), name="metrics"),
    path("palette", views.palette, name="palette"),
    path("account/", include("allauth.urls")),
    path("api/docs", views.api_docs, name="api-docs"),
    path("api/v1/schema", views.Schema.as_view(), name="api-schema"),
    path("api/v1/", include([*teams.api, *notices.api, *clusters.api, *jobs.api])),
    *teams.pages,
    *notices.pages,
    *clusters.pages,
    *jobs.pages,
]
