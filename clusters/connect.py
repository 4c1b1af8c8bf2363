"""The only door to adapters: reads rows, decrypts, hands plain values on."""

from pathlib import Path

from django.conf import settings

from clusters.models import Cluster, SchedulerKind
from clusters.schedulers.contract import Checks, Scheduler
from clusters.schedulers.local.adapter import LocalScheduler
from clusters.schedulers.local.checks import LocalChecks
from portal.core.errors import Unsupported
from portal.teams.models import Team

FIRST_UID = 50_000


def scheduler_of(cluster: Cluster) -> Scheduler:
    """Return the adapter of a cluster's scheduler. Raises `Unsupported`."""
    if cluster.scheduler == SchedulerKind.LOCAL:
        return LocalScheduler(
            folder=Path(settings.LOCAL_JOBS_FOLDER),
            wall=settings.HAS_WALL,
            portal_url=settings.LOOPBACK_URL,
        )
    raise Unsupported("unsupported", f"Slipway does not speak {cluster.scheduler} yet.")


def checks_of(cluster: Cluster) -> Checks:
    """Return what tries the way to the cluster, step by step. Raises `Unsupported`."""
    if cluster.scheduler == SchedulerKind.LOCAL:
        return LocalChecks(
            folder=Path(settings.LOCAL_JOBS_FOLDER),
            wall=settings.HAS_WALL,
            portal_url=portal_url_for(cluster),
            uid=FIRST_UID,
        )
    raise Unsupported("unsupported", f"Slipway does not speak {cluster.scheduler} yet.")


def owner_of(cluster: Cluster, team: Team) -> str:
    """Return as whom the team's jobs run there; for local behind a wall, the number of a user."""
    if cluster.scheduler == SchedulerKind.LOCAL and settings.HAS_WALL:
        return str(FIRST_UID + team.number)
    return ""


def portal_url_for(cluster: Cluster) -> str:
    """Return the address at which the cluster's nodes reach the portal."""
    is_here = cluster.scheduler == SchedulerKind.LOCAL
    return settings.LOOPBACK_URL if is_here else settings.PUBLIC_URL
