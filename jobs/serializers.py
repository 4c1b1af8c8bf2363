"""Shapes of jobs and quotas on the wire."""

from typing import Any

from rest_framework import serializers


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
