"""REST of a job's samples."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import metrics
from jobs import serializers as shapes
from jobs.api.jobs import JobView


class Metrics(JobView):
    """Figures of the machines that a job runs on."""

    @extend_schema(
        parameters=[
            OpenApiParameter("from", OpenApiTypes.DATETIME, description="the start of the run"),
            OpenApiParameter("to", OpenApiTypes.DATETIME, description="its end, or now"),
            OpenApiParameter(
                "step_seconds", int, description="length of a bucket, for up to 1,500 of them"
            ),
            OpenApiParameter("rank", int, description="only this rank; then it is no label"),
            OpenApiParameter(
                "names", str, description="only series that begin so; several with commas"
            ),
        ],
        responses=shapes.MetricsSerializer,
    )
    def get(self, request: Request, job: str) -> Response:
        """Return series by name as `[at, mean of the bucket]`, and what happened meanwhile.

        `null` is a gap. Buckets are longer than asked where only rollups are left: a minute after
        two hours, 15 minutes after 30 days; `step_seconds` says how long they are.
        """
        row = self.job()
        return Response(metrics.between(row, metrics.span(row, request.query_params)))
