"""Wishes about clusters, and what observers note of them."""

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from clusters.models import Cluster, SchedulerKind
from portal.core.turns import make_due

LOCAL = "local"


@transaction.atomic
def ensure_local() -> Cluster:
    """Make the cluster of this machine, once; behind a wall every team may launch there.

    Without root there is no wall: only teams that an admin assigns may launch, since jobs can then
    read what the portal can.
    """
    cluster, _made = Cluster.objects.get_or_create(
        slug=LOCAL,
        defaults={
            "name": "This machine",
            "scheduler": SchedulerKind.LOCAL,
            "is_shared": settings.HAS_WALL,
            "due_at": None,
        },
    )
    return cluster


def note_look(cluster: Cluster, *, failed: str = "") -> None:
    """Remember that a look at the cluster succeeded, or why it did not and since when."""
    rows = Cluster.objects.filter(pk=cluster.pk)
    if not failed:
        rows.update(seen_at=Now(), unavailable_since=None, message="")
        return
    rows.update(message=failed[:500])
    rows.filter(unavailable_since=None).update(unavailable_since=Now())


def look_soon(cluster_id: str) -> None:
    """Make the cluster's observer due now."""
    make_due(Cluster.objects.filter(pk=cluster_id))
