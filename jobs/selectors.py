"""Questions about jobs."""

from jobs.values import Usage
from portal.teams.models import Team


def usage_of(team: Team) -> Usage:
    """Return what the team's jobs use. There are no jobs yet, so nothing is used."""
    del team
    return Usage()
