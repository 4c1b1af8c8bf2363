"""Paths of jobs: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from jobs import api as rest
from jobs.views import definitions, quotas

pages: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>/quotas", quotas.quotas, name="team-quotas"),
    path("definitions", definitions.index, name="definitions"),
    path("definitions/new", definitions.new, name="definition-new"),
    path("definitions/check", definitions.check, name="definition-check"),
    path("definitions/<slug:definition>", definitions.one, name="definition"),
    path("definitions/<slug:definition>/delete", definitions.delete, name="definition-delete"),
    path("definitions/<slug:definition>/export", definitions.export, name="definition-export"),
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
