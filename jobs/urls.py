"""Page addresses."""

from django.urls import path

from .pages import views, views_form, views_job, views_parts

urlpatterns = [
    path("jobs/", views.jobs, name="jobs"),
    path("jobs/new/", views_form.new, name="job-new"),
    path("jobs/new/answer/", views_form.answer, name="job-new-answer"),
    path("jobs/bulk/", views.bulk, name="jobs-bulk"),
    path("jobs/<uuid:id>/", views_job.tab, {"name": "overview"}, name="job"),
    path("jobs/<uuid:id>/activity/", views_job.tab, {"name": "activity"}, name="job-activity"),
    path("jobs/<uuid:id>/parts/", views_parts.parts, name="job-parts"),
    path("jobs/<uuid:id>/stop-rest/", views_parts.stop_rest, name="job-stop-rest"),
    path("jobs/<uuid:id>/settings/", views_job.tab, {"name": "settings"}, name="job-settings"),
    path("jobs/<uuid:id>/<str:verb>/", views_job.act, name="job-act"),
]
