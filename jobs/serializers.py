"""Shapes of jobs and quotas on the wire."""

from typing import Any

from rest_framework import serializers

from jobs.models import DefinitionVersion, JobDefinition


class LimitsSerializer(serializers.Serializer[Any]):
    """Counts of what a team may use, or uses; null is no limit."""

    gpus = serializers.IntegerField(allow_null=True, required=False, min_value=0)
    gpus_by_type = serializers.DictField(
        required=False, child=serializers.IntegerField(min_value=0, allow_null=True)
    )
    nodes = serializers.IntegerField(allow_null=True, required=False, min_value=0)
    running_jobs = serializers.IntegerField(allow_null=True, required=False, min_value=0)
    gpu_hours_per_month = serializers.CharField(allow_null=True, required=False)


class QuotasSerializer(LimitsSerializer):
    """Every limit of a team, and what is used."""

    used = LimitsSerializer()


class DefinitionSerializer(serializers.ModelSerializer[JobDefinition]):
    """A definition with its newest version; `team` is empty for a built-in one."""

    team = serializers.CharField(source="team.slug", allow_null=True, default=None)
    version = serializers.IntegerField(source="latest")
    spec = serializers.DictField()
    saved_at = serializers.DateTimeField()

    class Meta:
        model = JobDefinition
        fields = ["id", "team", "slug", "name", "version", "spec", "created_at", "saved_at"]
        read_only_fields = fields


class VersionSerializer(serializers.ModelSerializer[DefinitionVersion]):
    """One version of a definition."""

    version = serializers.IntegerField(source="number")
    spec = serializers.DictField()
    created_by = serializers.CharField(source="created_by.email", allow_null=True, default=None)

    class Meta:
        model = DefinitionVersion
        fields = ["id", "version", "spec", "created_by", "created_at"]
        read_only_fields = fields


class DefinitionInput(serializers.Serializer[Any]):
    """A new definition."""

    team = serializers.CharField(max_length=40)
    slug = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=250)
    spec = serializers.DictField(help_text="checked by the portal; see docs/definitions.md")


class DefinitionPut(serializers.Serializer[Any]):
    """A new version of a definition."""

    name = serializers.CharField(max_length=250, required=False)
    spec = serializers.DictField()
