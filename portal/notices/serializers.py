"""Shapes of levels, routes and deliveries on the wire."""

from typing import Any

from rest_framework import serializers

from portal.notices.models import Delivery, Level, Route
from portal.notices.values import Kind, LevelName, State
from portal.teams.serializers import ONCE

LEVELS = [str(v) for v in LevelName]


class LevelSerializer(serializers.ModelSerializer[Level]):
    """How one matter stands; `team` is empty for the site's."""

    team = serializers.CharField(source="team.slug", allow_null=True, default=None)
    matter = serializers.CharField(source="key")
    level = serializers.ChoiceField(choices=LEVELS)

    class Meta:
        model = Level
        fields = ["id", "team", "matter", "level", "since", "facts", "updated_at"]
        read_only_fields = fields


class RouteSerializer(serializers.ModelSerializer[Route]):
    """A route; of its target only `target_label` can be read back."""

    team = serializers.CharField(source="team.slug", allow_null=True, default=None)
    kind = serializers.ChoiceField(choices=[str(v) for v in Kind])
    min_level = serializers.ChoiceField(choices=LEVELS)

    class Meta:
        model = Route
        fields = [
            "id",
            "team",
            "kind",
            "name",
            "target_label",
            "min_level",
            "quiet_from",
            "quiet_until",
            "is_enabled",
            "disabled_reason",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class CreatedRouteSerializer(RouteSerializer):
    """A new route with a webhook's signing secret (Standard Webhooks), shown once."""

    signing_secret = serializers.CharField(allow_null=True, required=False, help_text=ONCE)

    class Meta(RouteSerializer.Meta):
        fields = [*RouteSerializer.Meta.fields, "signing_secret"]


class RoutePatch(serializers.Serializer[Any]):
    """Changes of a route; quiet hours are wall-clock times of the team's zone."""

    name = serializers.CharField(max_length=100, required=False)
    target = serializers.CharField(max_length=2048, required=False, write_only=True)
    min_level = serializers.ChoiceField(choices=LEVELS, required=False)
    quiet_from = serializers.TimeField(required=False, allow_null=True)
    quiet_until = serializers.TimeField(required=False, allow_null=True)
    is_enabled = serializers.BooleanField(required=False)


class RouteInput(RoutePatch):
    """A new route of a team, or of the site when `team` is empty."""

    team = serializers.CharField(max_length=40, required=False, allow_null=True)
    kind = serializers.ChoiceField(choices=[str(v) for v in Kind])
    name = serializers.CharField(max_length=100)
    target = serializers.CharField(max_length=2048, write_only=True)


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One message on its way along a route."""

    route = serializers.CharField(source="route_id")
    state = serializers.ChoiceField(choices=[str(v) for v in State])
    next_attempt_at = serializers.SerializerMethodField()
    payload = serializers.DictField()

    class Meta:
        model = Delivery
        fields = [
            "id",
            "route",
            "state",
            "attempts",
            "last_error",
            "created_at",
            "ended_at",
            "next_attempt_at",
            "payload",
        ]
        read_only_fields = fields

    def get_next_attempt_at(self, delivery: Delivery) -> str | None:
        """Return when it is tried next, or nothing when it has ended."""
        if delivery.state != State.PENDING or delivery.due_at is None:
            return None
        return delivery.due_at.isoformat().replace("+00:00", "Z")
