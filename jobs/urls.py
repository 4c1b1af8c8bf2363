"""Paths of jobs: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from jobs.api import definitions as rest_definitions
from jobs.api import jobs as rest
from jobs.api import logs as rest_logs
from jobs.api import metrics as rest_metrics
from jobs.api import quotas as rest_quotas
from jobs.views import cluster, definitions, job, jobs, launch, metrics, quotas

pages: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>/quotas", quotas.quotas, name="team-quotas"),
    path("clusters/<slug:cluster>", cluster.one, name="cluster"),
    path("clusters/<slug:cluster>/check", cluster.check, name="cluster-check"),
    path("jobs", jobs.index, name="jobs"),
    path("jobs/rows", jobs.rows, name="jobs-rows"),
    path("jobs/stop", jobs.stop_many, name="jobs-stop"),
    path("jobs/<slug:job>", job.log, name="job"),
    path("jobs/<slug:job>/story", job.story, name="job-story"),
    path("jobs/<slug:job>/metrics", metrics.metrics, name="job-metrics"),
    path("jobs/<slug:job>/script", job.script, name="job-script"),
    path("jobs/<slug:job>/stop", jobs.stop, name="job-stop"),
    path("jobs/<slug:job>/retry", jobs.retry, name="job-retry"),
    path("jobs/<slug:job>/resume", jobs.resume, name="job-resume"),
    path("launch", launch.choose, name="launch-choose"),
    path("definitions/<slug:definition>/launch", launch.launch, name="launch"),
    path("definitions", definitions.index, name="definitions"),
    path("definitions/new", definitions.new, name="definition-new"),
    path("definitions/check", definitions.check, name="definition-check"),
    path("definitions/<slug:definition>", definitions.one, name="definition"),
    path("definitions/<slug:definition>/delete", definitions.delete, name="definition-delete"),
    path("definitions/<slug:definition>/export", definitions.export, name="definition-export"),
]
api: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>/quotas", rest_quotas.Quotas.as_view(), name="api-quotas"),
    path("job-definitions", rest_definitions.Definitions.as_view(), name="api-definitions"),
    path(
        "job-definitions/<slug:definition>",
        rest_definitions.OneDefinition.as_view(),
        name="api-definition",
    ),
    path(
        "job-definitions/<slug:definition>/versions",
        rest_definitions.Versions.as_view(),
        name="api-definition-versions",
    ),
    path("jobs", rest.Jobs.as_view(), name="api-jobs"),
    path("jobs/preview", rest.PreviewJob.as_view(), name="api-job-preview"),
    path("jobs/stop", rest.StopJobs.as_view(), name="api-jobs-stop"),
    path("jobs/<slug:job>", rest.OneJob.as_view(), name="api-job"),
    path("jobs/<slug:job>/stop", rest.StopJob.as_view(), name="api-job-stop"),
    path("jobs/<slug:job>/retry", rest.RetryJob.as_view(), name="api-job-retry"),
    path("jobs/<slug:job>/resume", rest.ResumeJob.as_view(), name="api-job-resume"),
    path("jobs/<slug:job>/report", rest.Report.as_view(), name="api-job-report"),
    path("jobs/<slug:job>/events", rest.Story.as_view(), name="api-job-events"),
    path("jobs/<slug:job>/logs", rest_logs.Logs.as_view(), name="api-job-logs"),
    path("jobs/<slug:job>/metrics", rest_metrics.Metrics.as_view(), name="api-job-metrics"),
    path("jobs/<slug:job>/logs/search", rest_logs.SearchLogs.as_view(), name="api-job-logs-search"),
]
