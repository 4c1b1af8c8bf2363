"""Registration of jobs with Django."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The room jobs."""

    name = "jobs"
