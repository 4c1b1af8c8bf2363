"""Tables of clusters."""

from django.db import models
from django.db.models.functions import Now

from portal.core import crypto
from portal.core.fields import id_field
from portal.core.turns import Turn
from portal.teams.models import Team, User, slug_validator


class SchedulerKind(models.TextChoices):
    """Which scheduler runs the jobs."""

    LOCAL = "local"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"


class ProviderKind(models.TextChoices):
    """Who provides the machines."""

    ATTACHED = "attached"


class Cluster(Turn):
    """Machines behind one scheduler; the turn is the observer's.

    Services write what is wanted; `seen_at`, `unavailable_since`, `message`, `nodes` and the turn
    are the observer's (jobs.reconcile, through clusters.services.note_look).
    """

    id = id_field()
    slug = models.CharField(max_length=40, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=250)
    scheduler = models.CharField(max_length=12, choices=SchedulerKind.choices)
    provider = models.CharField(
        max_length=12, choices=ProviderKind.choices, default=ProviderKind.ATTACHED
    )
    connection = models.BinaryField(null=True, help_text="JSON, encrypted; empty for local")
    teams = models.ManyToManyField(Team, blank=True, related_name="clusters")
    is_shared = models.BooleanField(default=False, help_text="true: every team may launch here")
    max_pending_seconds = models.PositiveIntegerField(default=7 * 24 * 3600)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(null=True, blank=True, help_text="last look that succeeded")
    unavailable_since = models.DateTimeField(null=True, blank=True)
    message = models.CharField(max_length=500, blank=True, help_text="why the last look failed")
    nodes = models.JSONField(default=list, help_text="as the scheduler showed them, by observers")
    nodes_seen_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.slug


CONNECTIONS = crypto.column(Cluster, "connection")
