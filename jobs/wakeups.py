"""Knocks on the doors of jobs.tasks, after commit; a lost one is found by the sweep."""

from portal.core import wakeups


def admit(team_id: str) -> None:
    """Ask to look at the team's line."""
    wakeups.wake("jobs.admit", team_id)


def advance(job_id: str) -> None:
    """Ask for a pass over the job."""
    wakeups.wake("jobs.advance", job_id)


def observe(cluster_id: str) -> None:
    """Ask for a look at the cluster's jobs."""
    wakeups.wake("jobs.observe", cluster_id)


def pull_log(job_id: str) -> None:
    """Ask to take over what the scheduler kept of a job whose agent never spoke."""
    wakeups.wake("jobs.stream.pull_log", job_id)
