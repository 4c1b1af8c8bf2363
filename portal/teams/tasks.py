"""Celery's doors into portal.teams.reconcile."""

from celery import shared_task

from portal.teams import reconcile


@shared_task(name="teams.seal_audit", ignore_result=True)
def seal_audit() -> None:
    """Seal what is ripe in the audit log."""
    reconcile.seal_audit()


@shared_task(name="teams.expire", ignore_result=True)
def expire() -> None:
    """Drop what has ended by itself."""
    reconcile.expire()
