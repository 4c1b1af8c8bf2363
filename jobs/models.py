"""Tables of jobs: definitions and their versions."""

from django.db import models
from django.db.models.functions import Now

from portal.core import ids
from portal.core.fields import OrderedJSONField
from portal.teams.models import Team, User, slug_validator


def _id_field() -> "models.CharField[str, str]":
    return models.CharField(
        primary_key=True, max_length=ids.LENGTH, default=ids.new, editable=False
    )


class JobDefinition(models.Model):
    """A named thing to run; what it says is in its versions, which never change."""

    id = _id_field()
    team = models.ForeignKey(
        Team,
        on_delete=models.CASCADE,
        null=True,
        related_name="job_definitions",
        help_text="empty: built in, for every team",
    )
    slug = models.CharField(max_length=40, validators=[slug_validator])
    name = models.CharField(max_length=250)
    latest = models.PositiveIntegerField(default=1, help_text="number of the newest version")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    archived_at = models.DateTimeField(null=True, blank=True, help_text="set by delete")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "slug"],
                condition=models.Q(archived_at=None),
                nulls_distinct=False,
                name="definition_slug_once_per_team",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class DefinitionVersion(models.Model):
    """What a definition said at one time; written once."""

    id = _id_field()
    definition = models.ForeignKey(JobDefinition, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = OrderedJSONField(help_text="raw, as jobs.spec.check accepts it; forms follow its order")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["definition", "number"], name="definition_version_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.definition_id} v{self.number}"
