"""Celery's doors into jobs.reconcile."""

from celery import shared_task

from jobs import reconcile
from jobs.logs import keep, pull


@shared_task(name="jobs.sweep", ignore_result=True)
def sweep() -> None:
    """Find what lost knocks have left."""
    reconcile.sweep()


@shared_task(name="jobs.admit", ignore_result=True)
def admit(team_id: str) -> None:
    """Look at the team's line."""
    reconcile.admit_queue(team_id)


@shared_task(name="jobs.advance", ignore_result=True)
def advance(job_id: str) -> None:
    """Make a pass over the job."""
    reconcile.advance(job_id)


@shared_task(name="jobs.observe", ignore_result=True)
def observe(cluster_id: str) -> None:
    """Look at the cluster's jobs."""
    reconcile.observe(cluster_id)


@shared_task(name="jobs.stream.keep_logs", ignore_result=True)
def keep_logs() -> None:
    """Compact finished logs, and keep all within their bounds."""
    keep.keep()


@shared_task(name="jobs.stream.pull_log", ignore_result=True)
def pull_log(job_id: str) -> None:
    """Take over what the scheduler kept of a job whose agent never spoke."""
    pull.pull(job_id)
