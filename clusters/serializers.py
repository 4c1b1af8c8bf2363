"""Shapes of clusters on the wire."""

from typing import Any

from rest_framework import serializers

from clusters.models import Cluster


class NodeSerializer(serializers.Serializer[Any]):
    """A machine as the scheduler showed it just now."""

    name = serializers.CharField()
    state = serializers.CharField()
    cpus = serializers.IntegerField()
    cpus_allocated = serializers.IntegerField()
    memory_bytes = serializers.IntegerField()
    gpus = serializers.IntegerField()
    gpus_allocated = serializers.IntegerField()
    gpu_type = serializers.CharField()
    reason = serializers.CharField()


class CheckStepSerializer(serializers.Serializer[Any]):
    """One thing that was tried."""

    title = serializers.CharField()
    is_ok = serializers.BooleanField()
    message = serializers.CharField(help_text="what was found, or what is wrong")
    remedy = serializers.CharField(help_text="how to mend it; empty when all is well")
    seconds = serializers.FloatField()


class CheckSerializer(serializers.Serializer[Any]):
    """Whether jobs can run on a cluster now."""

    is_ok = serializers.BooleanField()
    steps = CheckStepSerializer(many=True)


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    """A cluster; `teams` are those that may launch there, unless it is shared with all."""

    teams = serializers.SerializerMethodField()

    class Meta:
        model = Cluster
        fields = [
            "id",
            "slug",
            "name",
            "scheduler",
            "provider",
            "is_shared",
            "teams",
            "created_at",
            "seen_at",
            "unavailable_since",
            "message",
        ]
        read_only_fields = fields

    def get_teams(self, cluster: Cluster) -> list[str]:
        """Return the slugs of the teams that the actor may see among those assigned."""
        visible = self.context["visible"]
        return sorted(team.slug for team in cluster.teams.all() if team.pk in visible)


class ClusterPatch(serializers.Serializer[Any]):
    """Changes of a cluster, by site admins."""

    name = serializers.CharField(max_length=250, required=False)
    is_shared = serializers.BooleanField(required=False)
    teams = serializers.ListField(
        child=serializers.CharField(max_length=40), required=False, max_length=1000
    )
