from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from accounts.rest.not_yet import not_yet
from portal import health


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("workspaces")


api_v1 = [
    path("", include("accounts.rest.urls")),
    path("jobs/", not_yet("GET", "POST", write_scope="jobs"), name="jobs"),
]
urlpatterns = [
    path("api/v1/", include((api_v1, "api-v1"))),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("", include("accounts.urls")),
    path("", page, name="workspaces"),
]
handler400 = "accounts.rest.errors.bad_request"
handler404 = "accounts.rest.errors.page_not_found"
handler500 = "accounts.rest.errors.server_error"
