"""Every path of the portal; rooms bring their own pages and REST."""

from django.urls import include, path

from jobs import urls as jobs
from portal import health, views
from portal.notices import urls as notices
from portal.teams import urls as teams

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("account/", include("allauth.urls")),
    path("api/v1/", include([*teams.api, *notices.api, *jobs.api])),
    *teams.pages,
    *notices.pages,
    *jobs.pages,
]
