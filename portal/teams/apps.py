"""Registration of portal.teams with Django."""

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    """The room portal.teams."""

    name = "portal.teams"
    label = "teams"
