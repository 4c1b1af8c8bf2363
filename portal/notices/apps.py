"""Registration of portal.notices with Django."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """The room portal.notices."""

    name = "portal.notices"
    label = "notices"
