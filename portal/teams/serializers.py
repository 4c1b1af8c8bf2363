"""Shapes of people, teams, tokens, secrets and events on the wire."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from portal.teams import selectors
from portal.teams.models import (
    ApiToken,
    AuditEvent,
    Event,
    Invitation,
    Membership,
    Secret,
    Team,
    User,
)
from portal.teams.roles import Role, Scope, SiteRole

ONCE = "shown once: absent when an Idempotency-Key repeats the answer"


class TeamSerializer(serializers.ModelSerializer[Team]):
    """A team as the actor sees it; `role` is the actor's own."""

    role = serializers.SerializerMethodField()

    class Meta:
        model = Team
        fields = ["id", "slug", "name", "time_zone", "role", "created_at"]
        read_only_fields = fields

    def get_role(self, team: Team) -> str:
        """Return the actor's role in the team, or on the site."""
        return selectors.role_in(self.context["request"].actor, team)


class TeamInput(serializers.Serializer[Any]):
    """A new team."""

    slug = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=250)
    time_zone = serializers.CharField(max_length=64, default="UTC")


class TeamPatch(serializers.Serializer[Any]):
    """Changes of a team."""

    name = serializers.CharField(max_length=250, required=False)
    time_zone = serializers.CharField(max_length=64, required=False)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A member of a team."""

    user = serializers.CharField(source="user_id")
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")
    is_active = serializers.BooleanField(source="user.is_active")

    class Meta:
        model = Membership
        fields = ["user", "email", "name", "role", "is_active", "created_at"]
        read_only_fields = fields


class MemberInput(serializers.Serializer[Any]):
    """A person to add: known people join at once, others are invited by a link."""

    email = serializers.CharField(max_length=400)
    role = serializers.ChoiceField(choices=[str(r) for r in Role])


class RoleInput(serializers.Serializer[Any]):
    """A member's new role."""

    role = serializers.ChoiceField(choices=[str(r) for r in Role])


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An open invitation, without its link."""

    invited_by = serializers.CharField(source="invited_by.email", allow_null=True, default=None)

    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "invited_by", "created_at", "expires_at"]
        read_only_fields = fields


class AddedSerializer(serializers.Serializer[Any]):
    """What adding a person led to: a `member`, or an `invitation` with its `url`, shown once."""

    member = MemberSerializer(allow_null=True)
    invitation = InvitationSerializer(allow_null=True)
    url = serializers.URLField(allow_null=True, required=False, help_text=ONCE)


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """A secret without its value, which nobody can read back."""

    created_by = serializers.CharField(source="created_by.email", allow_null=True, default=None)

    class Meta:
        model = Secret
        fields = ["id", "name", "created_by", "created_at", "updated_at"]
        read_only_fields = fields


class SecretInput(serializers.Serializer[Any]):
    """A new secret."""

    name = serializers.CharField(max_length=100)
    value = serializers.CharField(max_length=65536, trim_whitespace=False, write_only=True)


class SecretValue(serializers.Serializer[Any]):
    """A secret's new value."""

    value = serializers.CharField(max_length=65536, trim_whitespace=False, write_only=True)


class EventSerializer(serializers.ModelSerializer[Event]):
    """One line of a team's feed."""

    actor = serializers.CharField(source="actor_label")

    class Meta:
        model = Event
        fields = ["id", "at", "actor", "action", "subject", "facts"]
        read_only_fields = fields


class AuditSerializer(serializers.ModelSerializer[AuditEvent]):
    """One record of the audit log."""

    actor = serializers.CharField(source="actor_label")
    team = serializers.CharField(source="team_slug")

    class Meta:
        model = AuditEvent
        fields = ["id", "at", "actor", "actor_id", "via", "action", "team", "subject", "facts"]
        read_only_fields = fields


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """An API token without its text."""

    team = serializers.CharField(source="team.slug", allow_null=True, default=None)

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "name",
            "prefix",
            "scopes",
            "team",
            "created_at",
            "expires_at",
            "last_used_at",
        ]
        read_only_fields = fields


class MintedSerializer(TokenSerializer):
    """A new API token with its text, shown once."""

    token = serializers.CharField(required=False, help_text=ONCE)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class TokenInput(serializers.Serializer[Any]):
    """A new API token."""

    name = serializers.CharField(max_length=100)
    team = serializers.CharField(max_length=40, required=False, allow_null=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(s) for s in Scope]), min_length=1, max_length=3
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class UserSerializer(serializers.ModelSerializer[User]):
    """A person, for admins and auditors."""

    team_count = serializers.IntegerField()

    class Meta:
        model = User
        fields = [
            "id",
            "email",
            "name",
            "site_role",
            "is_active",
            "created_at",
            "last_login",
            "team_count",
        ]
        read_only_fields = fields


class UserPatch(serializers.Serializer[Any]):
    """Changes that an admin makes to a person."""

    site_role = serializers.ChoiceField(choices=[str(r) for r in SiteRole], required=False)
    is_active = serializers.BooleanField(required=False)


class MeSerializer(serializers.Serializer[Any]):
    """Who asks, and by which token."""

    id = serializers.CharField()
    email = serializers.EmailField()
    name = serializers.CharField()
    site_role = serializers.CharField()
    teams = serializers.DictField(child=serializers.CharField(), help_text="team's slug → role")
    token = serializers.DictField(allow_null=True)


class ProfileInput(serializers.Serializer[Any]):
    """The actor's own name."""

    name = serializers.CharField(max_length=250, allow_blank=True)


def invitation_url(token: str) -> str:
    """Return the address of an invitation's link."""
    return f"{settings.PUBLIC_URL}/invite/{token}"
