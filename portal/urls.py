"""URL map: pages, the API under /api/v1/, health, metrics, admin."""

from django.contrib import admin
from django.urls import include, path

from portal import health, views
from portal.first_run.views import first_run
from portal.metrics import metrics
from portal.schema import SchemaView

api_v1 = [
    path("", include("portal.configuration.urls")),
    path("", include("accounts.rest.urls")),
    path("", include("clusters.urls_api")),
    path("", include("quotas.urls_api")),
    path("", include("storage.api.urls")),
    path("", include("workspaces.api.urls")),
    path("", include("workspaces.classes.urls_api")),
    path("", include("jobs.api.urls")),
    path("", include("workloads.logs.urls")),
    path("", include("monitoring.urls_api")),
    path("", include("portal.admin.urls_api")),
]

urlpatterns = [
    path("api/v1/", include((api_v1, "api-v1"))),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", views.api_docs, name="api-docs"),
    path("first-run/", first_run, name="first-run"),
    path("first-run/<slug:step>/", first_run, name="first-run-step"),
    path("help/causes/", views.causes, name="causes"),
    path("help/guide/<slug:slug>/", views.guide, name="guide"),
    path("tenant/", views.choose_tenant, name="choose-tenant"),
    path("theme/", views.choose_theme, name="choose-theme"),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("readyz/web", health.readyz_web),
    path("metrics", metrics),
    path("admin/", admin.site.urls),
    path("", include("accounts.urls")),
    path("", include("quotas.urls")),
    path("", include("storage.urls")),
    path("", include("monitoring.urls")),
    path("", include("workspaces.urls")),
    path("", include("jobs.urls")),
]

handler400 = "accounts.rest.errors.bad_request"
handler404 = "accounts.rest.errors.page_not_found"
handler500 = "accounts.rest.errors.server_error"
