"""REST of jobs: submit, list, look, stop, run again, and the story."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors as clusters
from jobs import filters, selectors
from jobs import serializers as shapes
from jobs.services import jobs
from jobs.services.jobs import Wanted
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
        body = self.valid(shapes.JobInput)
        team = teams.team_for(self.actor, body.pop("team"))
        cluster = clusters.cluster_for(self.actor, body.pop("cluster"))
        version = selectors.version_for(
            self.actor, team, body.pop("definition"), number=body.pop("version", None)
        )
        wanted = Wanted(version=version, team=team, cluster=clusters.facts_of(cluster), **body)
        job = jobs.submit(self.actor, wanted)
        return Response(self._shown(job), status=status.HTTP_201_CREATED)

    def _shown(self, job: Any) -> Any:
        return shapes.JobSerializer(selectors.job_for(self.actor, job.pk)).data


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
        made = jobs.retry(self.actor, self.job())
        return Response(self.shown(made), status=status.HTTP_201_CREATED)


class Story(JobView):
    """What happened to a job."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.StorySerializer))
    def get(self, request: Request, job: str) -> Response:
        """List the job's story, oldest first."""
        rows = selectors.story_of(self.actor, self.job())
        return self.page(rows, shapes.StorySerializer, order="pk")
