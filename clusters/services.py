"""Wishes about clusters, and what observers note of them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from clusters.models import Cluster, SchedulerKind
from clusters.schedulers.contract import NodeSeen
from portal.core.errors import Invalid
from portal.core.turns import make_due
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission
from portal.teams.services.access import require
from portal.teams.services.events import record_event
from portal.teams.services.names import check_name

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


def note_nodes(cluster: Cluster, nodes: Sequence[NodeSeen]) -> None:
    """Remember the machines that the scheduler showed."""
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(nodes=[asdict(node) for node in nodes], nodes_seen_at=Now())


def look_soon(cluster_id: str) -> None:
    """Make the cluster's observer due now."""
    make_due(Cluster.objects.filter(pk=cluster_id))


@transaction.atomic
def update_cluster(
    actor: Actor,
    cluster: Cluster,
    *,
    name: str | None = None,
    is_shared: bool | None = None,
    teams: Sequence[str] | None = None,
) -> Cluster:
    """Change a cluster's name and who may launch there; `None` leaves it. Site admins only.

    `teams` are slugs and replace those assigned. Raises `Invalid` for one that does not exist.
    """
    require(actor, Permission.SITE_EDIT)
    facts: dict[str, Any] = {}
    if name is not None and check_name(name) != cluster.name:
        facts["name"] = cluster.name = check_name(name)
    if is_shared is not None and is_shared != cluster.is_shared:
        facts["is_shared"] = cluster.is_shared = is_shared
    if teams is not None:
        rows = {team.slug: team for team in Team.objects.filter(slug__in=teams)}
        if missing := sorted(set(teams) - set(rows)):
            raise Invalid.at("teams", f"There is no team {missing[0][:40]}.")
        if set(rows) != set(cluster.teams.values_list("slug", flat=True)):
            facts["teams"] = sorted(rows)
            cluster.teams.set(rows.values())
    if facts:
        Cluster.objects.filter(pk=cluster.pk).update(name=cluster.name, is_shared=cluster.is_shared)
        record_event(
            "cluster.changed", subject=f"cluster:{cluster.pk}", actor=actor, facts=facts, audit=True
        )
    return cluster
