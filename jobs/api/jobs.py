"""REST of jobs: submit, list, look, stop, run again, and the story."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import asks
from clusters import selectors as clusters
from jobs import filters, metrics, selectors
from jobs import serializers as shapes
from jobs.services import again, jobs, preview
from jobs.services.jobs import Wanted
from portal.core.errors import Refused
from portal.core.rest import PAGED, ApiView, page_of
from portal.teams import selectors as teams
from portal.teams.idempotency import idempotent


class Jobs(ApiView):
    """Jobs of the actor's teams."""

    @extend_schema(
        parameters=[
            *PAGED,
            OpenApiParameter("team", str, description="a team's slug"),
            OpenApiParameter("cluster", str, description="a cluster's slug"),
            OpenApiParameter("phase", str, description="one or more, with commas"),
            OpenApiParameter("owner", str, description="an e-mail"),
            OpenApiParameter("definition", str, description="a definition's slug"),
            OpenApiParameter("tag", str, description="key=value, or key"),
            OpenApiParameter("created_after", str, description="RFC 3339"),
            OpenApiParameter("q", str, description="part of the name"),
        ],
        responses=page_of(shapes.JobSerializer),
    )
    def get(self, request: Request) -> Response:
        """List jobs, newest first."""
        rows = filters.jobs(selectors.jobs_for(self.actor), request.query_params)
        return self.page(rows, shapes.JobSerializer)

    @extend_schema(request=shapes.JobInput, responses={201: shapes.JobSerializer})
    @idempotent()
    def post(self, request: Request) -> Response:
        """Submit a job; it starts by itself when limits and cluster allow."""
        wanted = wanted_by(self)
        job = jobs.submit(self.actor, wanted)
        made = {"owner": self.actor.email, "cluster": wanted.cluster.slug}
        shown = shapes.JobSerializer(job, context=made).data
        return Response(shown, status=status.HTTP_201_CREATED)


class PreviewJob(ApiView):
    """What would happen to a job."""

    @extend_schema(request=shapes.JobInput, responses=shapes.PreviewSerializer)
    def post(self, request: Request) -> Response:
        """Say what submitting this would do: exact script, decision, rights. Changes nothing."""
        wanted = wanted_by(self)
        found = asdict(preview.preview(self.actor, wanted))
        runs_as = asks.runs_as(wanted.cluster.id, wanted.team)
        return Response({**found, "cost": None, "permissions": [runs_as]})


class StopJobs(ApiView):
    """The wish that many jobs end."""

    @extend_schema(
        operation_id="jobs_stop_many",
        request=shapes.JobIds,
        responses=shapes.StoppedSerializer,
    )
    def post(self, request: Request) -> Response:
        """Stop all of these jobs that live and that you may stop; others are passed over."""
        rows = selectors.jobs_among(self.actor, self.valid(shapes.JobIds)["ids"])
        return Response({"stopped": jobs.stop_many(self.actor, rows)})


def wanted_by(view: ApiView) -> Wanted:
    """Read a job to submit from a request's body. Raises `Invalid` and `NotFound`."""
    body = view.valid(shapes.JobInput)
    team = teams.team_for(view.actor, body.pop("team"))
    cluster = clusters.cluster_for(view.actor, body.pop("cluster"))
    version = selectors.version_for(
        view.actor, team, body.pop("definition"), number=body.pop("version", None)
    )
    for name in ("depends_on", "array"):
        if body.pop(name, None) is not None:
            raise Refused("unsupported", f"{name} is not there yet. Leave it out.")
    return Wanted(version=version, team=team, cluster=clusters.facts_of(cluster), **body)


class JobView(ApiView):
    """A view of one job."""

    def job(self) -> Any:
        """Return the job of the path, or raise `NotFound`."""
        return selectors.job_for(self.actor, self.kwargs["job"])

    def shown(self, job: Any) -> Any:
        """Return the job as it is now."""
        return shapes.JobSerializer(selectors.job_for(self.actor, job.pk)).data


class OneJob(JobView):
    """One job."""

    @extend_schema(responses=shapes.JobSerializer)
    def get(self, request: Request, job: str) -> Response:
        """Return a job."""
        return Response(shapes.JobSerializer(self.job()).data)

    @extend_schema(request=shapes.JobPatch, responses=shapes.JobSerializer)
    def patch(self, request: Request, job: str) -> Response:
        """Change name or tags, and the priority while the job waits in line."""
        row = self.job()
        return Response(self.shown(jobs.change(self.actor, row, **self.valid(shapes.JobPatch))))


class StopJob(JobView):
    """The wish that a job ends."""

    @extend_schema(request=None, responses=shapes.JobSerializer)
    def post(self, request: Request, job: str) -> Response:
        """Stop a job: its checkpoint signal, its grace, then the end. Asking twice is once."""
        return Response(self.shown(jobs.stop(self.actor, self.job())))


class RetryJob(JobView):
    """The same job anew."""

    @extend_schema(request=None, responses={201: shapes.JobSerializer})
    @idempotent()
    def post(self, request: Request, job: str) -> Response:
        """Submit the job that has ended once more, as a new job."""
        made = again.retry(self.actor, self.job())
        return Response(self.shown(made), status=status.HTTP_201_CREATED)


class ResumeJob(JobView):
    """The same job from where it was."""

    @extend_schema(request=None, responses={201: shapes.JobSerializer})
    @idempotent()
    def post(self, request: Request, job: str) -> Response:
        """Submit the job that has ended to go on from its last complete checkpoint."""
        made = again.resume(self.actor, self.job())
        return Response(self.shown(made), status=status.HTTP_201_CREATED)


class Report(JobView):
    """What a job came to."""

    @extend_schema(responses=shapes.ReportSerializer)
    def get(self, request: Request, job: str) -> Response:
        """Return GPU-hours, how it ended in words, its attempts and checkpoints.

        Money is null where there are no prices. `mean_utilisation` has the means of `gpu` and `cpu`
        over the whole run, each null without samples of it, and is null without any.
        """
        row = self.job()
        report = {**selectors.report_of(row), "mean_utilisation": metrics.mean_utilisation(row)}
        return Response(shapes.ReportSerializer(report).data)


class Story(JobView):
    """What happened to a job."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.StorySerializer))
    def get(self, request: Request, job: str) -> Response:
        """List the job's story, oldest first."""
        rows = selectors.story_of(self.actor, self.job())
        return self.page(rows, shapes.StorySerializer, order="pk")
