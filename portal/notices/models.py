"""Tables of notices: levels, the routes by which people hear of them, and deliveries."""

from django.db import models
from django.db.models.functions import Now

from portal.core import crypto
from portal.core.fields import id_field
from portal.core.turns import Turn
from portal.notices.values import Kind, LevelName, State
from portal.teams.models import Team, User


class Level(models.Model):
    """How one matter stands now; written by `services.set_level` alone."""

    id = id_field()
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, related_name="levels", help_text="empty: site"
    )
    key = models.CharField(max_length=200, help_text="the matter, such as budget:01J…")
    level = models.CharField(
        max_length=4, choices=[(v.value, v.value) for v in LevelName], default=LevelName.OK
    )
    facts = models.JSONField(default=dict, help_text="`message` and `path` are for people")
    change = models.PositiveIntegerField(default=0, help_text="counts changes of `level`")
    since = models.DateTimeField(db_default=Now(), help_text="when `level` last changed")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "key"], nulls_distinct=False, name="level_once_per_scope"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.level}"


class Route(models.Model):
    """A way to people: an address, and what they want to hear when."""

    id = id_field()
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, related_name="routes", help_text="empty: site"
    )
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=7, choices=[(v.value, v.value) for v in Kind])
    target = models.BinaryField(help_text="address or URL; portal.core.crypto, bound to this row")
    target_label = models.CharField(max_length=254, help_text="what may be shown of the target")
    signing = models.BinaryField(null=True, help_text="signing secret of a webhook; as target")
    min_level = models.CharField(
        max_length=4, choices=[(v.value, v.value) for v in LevelName], default=LevelName.WARN
    )
    quiet_from = models.TimeField(null=True, blank=True, help_text="wall clock of the team's zone")
    quiet_until = models.TimeField(null=True, blank=True, help_text="wall clock of the team's zone")
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(
        max_length=200, blank=True, help_text="why the portal disabled it; by the reconciler"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], nulls_distinct=False, name="route_name_once_per_scope"
            ),
            models.CheckConstraint(
                condition=models.Q(quiet_from=None, quiet_until=None)
                | models.Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="route_quiet_hours_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(Turn):
    """One change of a level on its way along one route.

    Services open and reopen it; everything after that is written by the reconciler.
    """

    id = id_field()
    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="deliveries")
    level = models.ForeignKey(
        Level, on_delete=models.SET_NULL, null=True, related_name="+", help_text="empty: a test"
    )
    change = models.PositiveIntegerField(default=0, help_text="the level's `change` then")
    is_urgent = models.BooleanField(default=False, help_text="not held back by quiet hours")
    payload = models.JSONField(help_text="what is sent, the same at every attempt")
    state = models.CharField(
        max_length=9, choices=[(v.value, v.value) for v in State], default=State.PENDING
    )
    attempts = models.PositiveIntegerField(default=0, help_text="counted before the act")
    last_error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["route", "level", "change"], name="delivery_once_per_change"
            ),
        ]
        indexes = [models.Index(fields=["route", "-id"], name="delivery_of_route")]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


TARGETS = crypto.column(Route, "target")
SIGNING_SECRETS = crypto.column(Route, "signing")
