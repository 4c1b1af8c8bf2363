"""Celery's doors into portal.notices.reconcile."""

from celery import shared_task

from portal.notices import reconcile


@shared_task(name="notices.deliver", ignore_result=True)
def deliver() -> None:
    """Try the deliveries that are due."""
    reconcile.deliver()


@shared_task(name="notices.prune", ignore_result=True)
def prune() -> None:
    """Delete deliveries that ended long ago."""
    reconcile.prune()
