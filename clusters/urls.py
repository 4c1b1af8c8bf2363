"""Paths of clusters: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from clusters import api as rest
from clusters import views

pages: list[URLPattern | URLResolver] = [
    path("clusters", views.index, name="clusters"),
]
api: list[URLPattern | URLResolver] = [
    path("clusters", rest.Clusters.as_view(), name="api-clusters"),
    path("clusters/<slug:cluster>", rest.OneCluster.as_view(), name="api-cluster"),
    path("clusters/<slug:cluster>/check", rest.Check.as_view(), name="api-cluster-check"),
    path("clusters/<slug:cluster>/nodes", rest.Nodes.as_view(), name="api-cluster-nodes"),
]
