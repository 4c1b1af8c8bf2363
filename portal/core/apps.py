"""Registration of portal.core with Django."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """The room portal.core."""

    name = "portal.core"
    label = "core"
