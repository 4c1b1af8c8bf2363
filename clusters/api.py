"""REST of clusters."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import asks, selectors, services
from clusters import serializers as shapes
from clusters.models import Cluster
from portal.core.rest import PAGED, ApiView, page_of
from portal.teams import selectors as teams


class ClusterView(ApiView):
    """A view of clusters that names only teams which the actor may see."""

    def context(self) -> dict[str, Any]:
        """Return what the serializer needs: the ids of the visible teams; one query."""
        return {"visible": set(teams.teams_for(self.actor).values_list("pk", flat=True))}

    def shown(self, cluster: Cluster) -> Any:
        """Return the cluster as the actor may see it."""
        return shapes.ClusterSerializer(cluster, context=self.context()).data


class Clusters(ClusterView):
    """Clusters that the actor may see."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.ClusterSerializer))
    def get(self, request: Request) -> Response:
        """List clusters, by name in addresses."""
        rows = selectors.clusters_for(self.actor).prefetch_related("teams")
        return self.page(rows, shapes.ClusterSerializer, order="slug", **self.context())


class OneCluster(ClusterView):
    """One cluster."""

    @extend_schema(responses=shapes.ClusterSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Return a cluster."""
        return Response(self.shown(selectors.cluster_for(self.actor, cluster)))

    @extend_schema(request=shapes.ClusterPatch, responses=shapes.ClusterSerializer)
    def patch(self, request: Request, cluster: str) -> Response:
        """Change a cluster's name, or who may launch there; site admins only."""
        row = selectors.cluster_for(self.actor, cluster)
        changed = services.update_cluster(self.actor, row, **self.valid(shapes.ClusterPatch))
        return Response(self.shown(changed))


class Nodes(ClusterView):
    """Machines of a cluster."""

    @extend_schema(responses=shapes.NodeSerializer(many=True))
    def get(self, request: Request, cluster: str) -> Response:
        """Ask the scheduler for its machines, now."""
        row = selectors.cluster_for(self.actor, cluster)
        return Response(shapes.NodeSerializer(asks.nodes_of(row.pk), many=True).data)


class Check(ClusterView):
    """Whether jobs can run on a cluster now."""

    @extend_schema(request=None, responses=shapes.CheckSerializer)
    def post(self, request: Request, cluster: str) -> Response:
        """Try the way to the cluster now, step by step; changes nothing."""
        row = selectors.cluster_for(self.actor, cluster)
        steps = asks.check(self.actor, row)
        found = {"is_ok": all(step.is_ok for step in steps), "steps": steps}
        return Response(shapes.CheckSerializer(found).data)
