"""Shapes of jobs and quotas on the wire."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from jobs import telling
from jobs.models import DefinitionVersion, Job, JobDefinition, JobEvent
from jobs.states import Phase
from portal.core.rest import Strict


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


class ReasonSerializer(serializers.Serializer[Any]):
    """Why a job waits or has ended, and what to do."""

    code = serializers.CharField()
    message = serializers.CharField()
    advice = serializers.CharField()


@extend_schema_field(serializers.DictField(allow_null=True))
class NotYet(serializers.Field[Any, Any, Any, Any]):
    """A field of the contract that nothing can fill yet: always null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job: what was wished, and how far it is."""

    team = serializers.CharField(source="team.slug")
    owner = serializers.CharField(source="owner.email", allow_null=True, default=None)
    cluster = serializers.CharField(source="cluster.slug")
    definition = serializers.SerializerMethodField()
    parameters = serializers.DictField()
    resources = serializers.DictField()
    tags = serializers.DictField(child=serializers.CharField())
    phase = serializers.ChoiceField(choices=[str(p) for p in Phase])
    reason = serializers.SerializerMethodField()
    retry_of = serializers.CharField(source="retry_of_id", allow_null=True)
    resumed_from = serializers.CharField(source="resumed_from_id", allow_null=True)
    ranks = serializers.SerializerMethodField()
    cost = NotYet(help_text="null: the cluster has no prices")
    image_digest = NotYet(help_text="null: the cluster runs no containers")
    nodes = serializers.ListField(source="node_names", child=serializers.CharField())

    class Meta:
        model = Job
        fields = [
            "id",
            "name",
            "team",
            "owner",
            "cluster",
            "definition",
            "parameters",
            "resources",
            "time_limit_seconds",
            "priority",
            "tags",
            "phase",
            "reason",
            "external_id",
            "attempt",
            "restart",
            "retry_of",
            "resumed_from",
            "ranks",
            "cost",
            "image_digest",
            "created_at",
            "submitted_at",
            "started_at",
            "ended_at",
            "exit_code",
            "signal",
            "nodes",
        ]
        read_only_fields = fields

    def to_representation(self, job: Job) -> dict[str, Any]:
        """Return the job as the fields above say it, a hundred of them in a few milliseconds.

        Who has just made it gives `owner` and `cluster` in the context, which saves two questions.
        """
        made = self.context
        owner = made.get("owner") or (job.owner.email if job.owner else None)
        return {
            "id": job.pk,
            "name": job.name,
            "team": job.team.slug,
            "owner": owner,
            "cluster": made.get("cluster") or job.cluster.slug,
            "definition": self.get_definition(job),
            "parameters": job.parameters,
            "resources": job.resources,
            "time_limit_seconds": job.time_limit_seconds,
            "priority": job.priority,
            "tags": job.tags,
            "phase": str(job.phase),
            "reason": self.get_reason(job),
            "external_id": job.external_id,
            "attempt": job.attempt,
            "restart": job.restart,
            "retry_of": job.retry_of_id,
            "resumed_from": job.resumed_from_id,
            "ranks": self.get_ranks(job),
            "cost": None,
            "image_digest": None,
            "created_at": _rfc3339(job.created_at),
            "submitted_at": _rfc3339(job.submitted_at),
            "started_at": _rfc3339(job.started_at),
            "ended_at": _rfc3339(job.ended_at),
            "exit_code": job.exit_code,
            "signal": job.signal,
            "nodes": job.node_names,
        }

    @extend_schema_field(
        inline_serializer(
            "JobDefinitionOfJob",
            {
                "id": serializers.CharField(),
                "slug": serializers.CharField(),
                "version": serializers.IntegerField(),
            },
        )
    )
    def get_definition(self, job: Job) -> dict[str, Any]:
        """Return which version of which definition the job runs."""
        definition = job.version.definition
        return {"id": definition.pk, "slug": definition.slug, "version": job.version.number}

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_ranks(self, job: Job) -> list[int]:
        """Return the ranks that have a log of their own."""
        return list(range(job.nodes if job.submitted_at else 0))

    @extend_schema_field(ReasonSerializer(allow_null=True))
    def get_reason(self, job: Job) -> dict[str, str] | None:
        """Return why the job waits or has ended, or nothing."""
        if not job.reason:
            return None
        words = job.message or telling.because(job.reason)
        if not words and Phase(job.phase).is_final:
            words = telling.ending(job.exit_code, job.signal)
        return {"code": job.reason, "message": words, "advice": job.advice}


def _rfc3339(instant: datetime | None) -> str | None:
    return instant.isoformat().replace("+00:00", "Z") if instant else None


class JobInput(Strict):
    """A job to submit."""

    definition = serializers.CharField(max_length=40, help_text="id, or slug in the team")
    version = serializers.IntegerField(required=False, min_value=1, max_value=10**8)
    team = serializers.CharField(max_length=40)
    cluster = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=250, required=False, allow_blank=True)
    parameters = serializers.DictField(required=False)
    resources = serializers.DictField(required=False)
    time_limit_seconds = serializers.IntegerField(required=False, min_value=1, max_value=10**8)
    tags = serializers.DictField(required=False, child=serializers.CharField(max_length=250))
    placement = serializers.DictField(required=False, child=serializers.CharField(max_length=250))
    force_queue = serializers.BooleanField(
        required=False, help_text="queue it even if no node seen can hold it"
    )
    depends_on = serializers.JSONField(required=False, help_text="not supported yet: 422")
    array = serializers.JSONField(required=False, help_text="not supported yet: 422")


class JobPatch(Strict):
    """What may change of a job."""

    name = serializers.CharField(max_length=250, required=False)
    tags = serializers.DictField(required=False, child=serializers.CharField(max_length=250))
    priority = serializers.IntegerField(required=False, min_value=-1000, max_value=1000)


class JobIds(serializers.Serializer[Any]):
    """Many jobs."""

    ids = serializers.ListField(
        child=serializers.CharField(max_length=26), min_length=1, max_length=500
    )


class StoppedSerializer(serializers.Serializer[Any]):
    """How many jobs were asked to stop."""

    stopped = serializers.IntegerField()


class DecisionSerializer(serializers.Serializer[Any]):
    """What admission says."""

    verdict = serializers.ChoiceField(choices=["starts", "waits", "refused"])
    code = serializers.CharField()
    message = serializers.CharField()
    advice = serializers.CharField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What submitting would do."""

    script = serializers.CharField()
    environment = serializers.DictField(child=serializers.CharField())
    resources = serializers.DictField()
    time_limit_seconds = serializers.IntegerField()
    decision = DecisionSerializer()
    cost = serializers.DictField(allow_null=True, help_text="null: the cluster has no prices")
    permissions = serializers.ListField(child=serializers.CharField())


class AttemptSerializer(serializers.Serializer[Any]):
    """One try of a job, as its agent reported it; null where no agent has."""

    number = serializers.IntegerField()
    agent = serializers.DictField(allow_null=True)
    exit = serializers.DictField(allow_null=True)


class CheckpointSerializer(serializers.Serializer[Any]):
    """A complete checkpoint."""

    attempt = serializers.IntegerField()
    rank = serializers.IntegerField()
    name = serializers.CharField()
    at = serializers.DateTimeField()
    seconds = serializers.FloatField(allow_null=True)
    bytes = serializers.IntegerField()


class ReportSerializer(serializers.Serializer[Any]):
    """What a job came to."""

    cost = serializers.DictField(allow_null=True)
    gpu_hours = serializers.FloatField()
    mean_utilisation = serializers.DictField(allow_null=True)
    idle_money = serializers.CharField(allow_null=True)
    diagnosis = serializers.CharField()
    attempts = AttemptSerializer(many=True)
    checkpoints = CheckpointSerializer(many=True)


class StorySerializer(serializers.ModelSerializer[JobEvent]):
    """One line of a job's story."""

    actor = serializers.CharField(source="actor_label")

    class Meta:
        model = JobEvent
        fields = ["id", "at", "kind", "phase", "reason", "message", "actor", "attempt"]
        read_only_fields = fields


class HappenedSerializer(serializers.Serializer[Any]):
    """Something to draw on the time axis."""

    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="`phase` or `checkpoint`")
    name = serializers.CharField(help_text="the phase, or the checkpoint's name")
    seconds = serializers.FloatField(required=False, allow_null=True)
    bytes = serializers.IntegerField(required=False)
    rank = serializers.IntegerField(required=False)


class MetricsSerializer(serializers.Serializer[Any]):
    """A job's series in a span."""

    to = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    series = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField()),
        help_text="name → `[at, value or null]` of each bucket",
    )
    events = HappenedSerializer(many=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is a word of the language."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class PartSerializer(serializers.Serializer[Any]):
    """Bytes of one source in a row; with `gap`, a sentence in place of bytes that are not there."""

    offset = serializers.IntegerField()
    next_offset = serializers.IntegerField()
    line = serializers.IntegerField(help_text="newlines before the offset")
    text = serializers.CharField()
    stream = serializers.CharField()
    rank = serializers.IntegerField()
    attempt = serializers.IntegerField()
    at = serializers.FloatField(help_text="seconds since 1970, by the node's clock")
    gap = serializers.CharField(allow_null=True)


class LogSerializer(serializers.Serializer[Any]):
    """A piece of a job's log; offsets count raw bytes."""

    offset = serializers.IntegerField()
    next_offset = serializers.IntegerField()
    complete = serializers.BooleanField(help_text="nothing follows, now or later")
    size = serializers.IntegerField(help_text="bytes so far")
    lines = serializers.IntegerField(help_text="newlines so far")
    text = serializers.CharField(required=False)
    parts = PartSerializer(many=True, required=False)


class HitSerializer(serializers.Serializer[Any]):
    """A line that holds the text."""

    offset = serializers.IntegerField(help_text="of the text")
    line = serializers.IntegerField(help_text="from 0")
    text = serializers.CharField()


class HitsSerializer(serializers.Serializer[Any]):
    """What a stretch of a log holds."""

    hits = HitSerializer(many=True)
    next_offset = serializers.IntegerField()
    complete = serializers.BooleanField()
