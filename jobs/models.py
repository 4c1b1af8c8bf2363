"""Tables of jobs: definitions with their versions, jobs and their stories."""

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from clusters.models import Cluster
from jobs.states import Phase
from portal.core import crypto
from portal.core.fields import OrderedJSONField, id_field
from portal.core.turns import Turn
from portal.teams.models import Team, User, slug_validator


class JobDefinition(models.Model):
    """A named thing to run; what it says is in its versions, which never change."""

    id = id_field()
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

    id = id_field()
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


class Job(Turn):
    """One run of a definition on one cluster.

    Two kinds of columns, never written by the same hand: the *wish* (services) and the *status*
    (jobs.reconcile alone, through its turn).
    """

    id = id_field()
    # The wish: written once at submission, but for the stop.
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="jobs")
    version = models.ForeignKey(DefinitionVersion, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=250)
    parameters = OrderedJSONField(default=dict, help_text="all values, defaults filled in")
    resources = models.JSONField(help_text="as jobs.spec has them, defaults filled in")
    nodes = models.PositiveIntegerField(help_text="wish; counts against quota while live")
    gpus = models.PositiveIntegerField(help_text="wish, of all nodes")
    gpu_type = models.CharField(max_length=50, blank=True)
    time_limit_seconds = models.PositiveIntegerField()
    priority = models.IntegerField(default=0)
    tags = models.JSONField(default=dict)
    placement = models.JSONField(default=dict)
    retry_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    resumed_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    stop_reason = models.CharField(max_length=30, blank=True, help_text="the wish to stop, and why")
    stopped_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    # The status.
    phase = models.CharField(
        max_length=10, choices=[(p.value, p.value) for p in Phase], default=Phase.QUEUED
    )
    reason = models.CharField(max_length=30, blank=True)
    message = models.CharField(max_length=500, blank=True)
    advice = models.CharField(max_length=500, blank=True)
    attempt = models.PositiveIntegerField(default=1)
    restart = models.PositiveIntegerField(default=0)
    external_id = models.CharField(max_length=200, blank=True)
    seen = models.JSONField(null=True, help_text="the last observation; by the observer")
    absent_since = models.DateTimeField(null=True, help_text="by the observer")
    queued_at = models.DateTimeField(db_default=Now())
    admitted_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    signalled_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    node_names = models.JSONField(default=list)

    class Meta:
        indexes = [
            models.Index(fields=["team", "-id"], name="job_of_team"),
            models.Index(fields=["owner", "-id"], name="job_of_owner"),
            GinIndex(fields=["tags"], name="job_by_tag"),
            models.Index(
                fields=["team", "-id"],
                name="job_ended_badly",
                condition=models.Q(phase__in=["FAILED", "CANCELLED"]),
            ),
            models.Index(
                fields=["team", "phase"],
                name="job_unfinished",
                condition=models.Q(phase__in=[str(p) for p in Phase if not p.is_final]),
            ),
            models.Index(
                fields=["cluster"],
                name="job_on_cluster",
                condition=models.Q(phase__in=["SUBMITTED", "RUNNING", "STOPPING"]),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class JobEvent(models.Model):
    """One line of a job's story, oldest first."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="story")
    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=30, help_text="phase, wish, waits or note")
    phase = models.CharField(max_length=10, blank=True)
    reason = models.CharField(max_length=30, blank=True)
    message = models.CharField(max_length=500, blank=True)
    actor_label = models.CharField(max_length=254, blank=True)
    attempt = models.PositiveIntegerField(default=1)

    class Meta:
        indexes = [models.Index(fields=["job", "id"], name="story_of_job")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.kind} {self.phase}"


class Attempt(models.Model):
    """One try of a job, and what its agent reported; reports are observations, never status."""

    id = id_field()
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256, hexadecimal")
    token_sealed = models.BinaryField(
        null=True, help_text="so that submitting twice gives the same; gone once submitted"
    )
    secrets_nonce = models.CharField(max_length=64, blank=True, help_text="who took the secrets")
    agent = models.JSONField(null=True, help_text="host, python and version, of the first post")
    exit = models.JSONField(null=True, help_text="how the command ended, as the agent saw it")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_once"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}"


class Checkpoint(models.Model):
    """A complete checkpoint that an agent saw appear."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="checkpoints")
    attempt = models.PositiveIntegerField()
    rank = models.PositiveIntegerField(default=0)
    folder = models.CharField(max_length=1000, blank=True, help_text="absolute, on its node")
    name = models.CharField(max_length=255)
    at = models.DateTimeField()
    seconds = models.FloatField(null=True, help_text="how long writing took, when it is known")
    bytes = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempt", "rank", "name"], name="checkpoint_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class LogCursor(models.Model):
    """Where a job's log ends; its row lock orders all who append. Lines are in `jobs_logchunk`."""

    job = models.OneToOneField(
        Job, on_delete=models.CASCADE, primary_key=True, related_name="log_cursor"
    )
    position = models.BigIntegerField(default=0, help_text="bytes of the merged log")
    lines = models.BigIntegerField(default=0, help_text="newlines in it")
    streams = models.JSONField(default=dict, help_text="stream → its bytes and newlines")
    sources = models.JSONField(
        default=dict, help_text="attempt.restart.rank.stream → offset up to which all is there"
    )
    first_day = models.DateField(null=True, help_text="of its chunks; older partitions have none")
    followed_until = models.DateTimeField(null=True, help_text="somebody reads along")
    archived_at = models.DateTimeField(null=True, help_text="compacted into one object")
    archive = models.CharField(max_length=200, blank=True, help_text="name in the file storage")
    frames = models.BinaryField(null=True, help_text="index of the object; see jobs.logs.frames")
    forgotten_at = models.DateTimeField(
        null=True, help_text="the object and what the scheduler kept are deleted"
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["job"], name="log_not_archived", condition=models.Q(archived_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"log of {self.job_id}"


ATTEMPT_TOKENS = crypto.column(Attempt, "token_sealed")
