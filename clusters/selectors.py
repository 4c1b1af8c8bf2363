"""Questions about clusters; each that a person asks starts from the actor."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db.models import Q, QuerySet

from clusters import values
from clusters.models import Cluster, SchedulerKind
from clusters.schedulers.contract import NodeSeen
from clusters.values import ClusterFacts, Use
from portal.core.errors import NotFound
from portal.teams import selectors as teams
from portal.teams.models import Team
from portal.teams.roles import Actor, Scope

AGENT: Final = Path(__file__).parent / "agent" / "slipway_agent.py"


def clusters_for(actor: Actor) -> QuerySet[Cluster]:
    """Return the clusters that the actor may see, by slug."""
    if not actor.has_scope(Scope.READ):
        return Cluster.objects.none()
    rows = Cluster.objects.order_by("slug")
    if actor.is_site_wide:
        return rows
    return rows.filter(Q(is_shared=True) | Q(teams__in=teams.teams_for(actor))).distinct()


def cluster_for(actor: Actor, slug: str) -> Cluster:
    """Return a cluster; raise `NotFound` when it is not the actor's to see."""
    cluster = clusters_for(actor).filter(slug=slug).first()
    if cluster is None:
        raise NotFound("not_found", "There is no such cluster, or it is not yours to see.")
    return cluster


def may_launch(cluster: ClusterFacts, team: Team) -> bool:
    """Tell whether the team's jobs may run on the cluster."""
    return cluster.is_shared or Cluster.objects.filter(pk=cluster.id, teams=team).exists()


def facts_of(cluster: Cluster) -> ClusterFacts:
    """Return the cluster as jobs need to know it.

    This machine is shared with nobody while there is no wall, whatever was set while there was one.
    """
    is_local = cluster.scheduler == SchedulerKind.LOCAL
    return ClusterFacts(
        id=cluster.pk,
        slug=cluster.slug,
        name=cluster.name,
        scheduler=cluster.scheduler,
        is_shared=cluster.is_shared and (not is_local or settings.HAS_WALL),
        nodes=tuple(NodeSeen(**raw) for raw in cluster.nodes),
    )


def use_of(cluster: Cluster) -> Use:
    """Return what was in use of the cluster's machines when they were seen last."""
    return values.use_of(facts_of(cluster).nodes)


def all_clusters() -> QuerySet[Cluster]:
    """Return every cluster, for passes of reconcilers."""
    return Cluster.objects.all()


def cluster_by_id(cluster_id: str) -> Cluster:
    """Return a cluster, for reconcilers."""
    return Cluster.objects.get(pk=cluster_id)


def teams_of(cluster: Cluster) -> list[Team]:
    """Return the teams that are assigned to the cluster, by name."""
    return list(cluster.teams.order_by("name"))


def agent_source() -> bytes:
    """Return the node agent's file."""
    return AGENT.read_bytes()


@cache
def agent_sha256() -> str:
    """Return its SHA-256, in hexadecimal."""
    return hashlib.sha256(agent_source()).hexdigest()
