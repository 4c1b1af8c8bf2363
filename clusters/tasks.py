"""Celery's doors into clusters.reconcile and clusters.samples."""

from celery import shared_task

from clusters.samples import rollup


@shared_task(name="clusters.stream.roll_up", ignore_result=True)
def roll_up() -> None:
    """Roll up samples, and drop what need not be kept any more."""
    rollup.roll_up()
