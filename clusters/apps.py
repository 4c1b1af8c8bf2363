"""Registration of clusters with Django."""

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    """The room clusters."""

    name = "clusters"
