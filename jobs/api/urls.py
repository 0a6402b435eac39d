"""REST addresses of jobs; and those of the contract that are not built yet."""

from django.urls import path

from . import api
from .logs import JobLogsView

urlpatterns = [
    path("jobs/", api.JobsView.as_view(), name="jobs"),
    path("jobs/<uuid:id>/", api.JobView.as_view(), name="job"),
    path("jobs/<uuid:id>/cancel/", api.CancelView.as_view(), name="job-cancel"),
    path("jobs/<uuid:id>/retry/", api.RetryView.as_view(), name="job-retry"),
    path("jobs/<uuid:id>/retry-failed/", api.RetryFailedView.as_view(), name="job-retry-failed"),
    path("jobs/<uuid:id>/duplicate/", api.DuplicateView.as_view(), name="job-duplicate"),
    path("workspaces/<uuid:id>/job/", api.JobOfWorkspaceView.as_view(), name="workspace-job"),
    path("jobs/<uuid:id>/stop-rest/", api.StopRestView.as_view(), name="job-stop-rest"),
    path("jobs/<uuid:id>/parts/", api.PartsView.as_view(), name="job-parts"),
    path("jobs/<uuid:id>/events/", api.JobEventsView.as_view(), name="job-events"),
    path("jobs/<uuid:id>/logs/", JobLogsView.as_view(), name="job-logs"),
    path("jobs/<uuid:id>/metrics/", api.MetricsView.as_view(), name="job-metrics"),
    path("jobs/<uuid:id>/pipeline/", api.PipelineView.as_view(), name="job-pipeline"),
    path("jobs/<uuid:id>/manifest/", api.ManifestView.as_view(), name="job-manifest"),
]
