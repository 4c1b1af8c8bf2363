"""Paths of jobs: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from jobs import api as rest
from jobs import views

pages: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>/quotas", views.quotas, name="team-quotas"),
]
api: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>/quotas", rest.Quotas.as_view(), name="api-quotas"),
    path("job-definitions", rest.Definitions.as_view(), name="api-definitions"),
    path("job-definitions/<slug:definition>", rest.OneDefinition.as_view(), name="api-definition"),
    path(
        "job-definitions/<slug:definition>/versions",
        rest.Versions.as_view(),
        name="api-definition-versions",
    ),
]
