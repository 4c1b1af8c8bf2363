"""Registration of billing with Django."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """The room billing."""

    name = "billing"
