"""REST addresses of logs over a tenant; those of workspaces and jobs are theirs."""

from django.urls import path

from . import api

urlpatterns = [path("logs/", api.TenantLogsView.as_view(), name="logs")]
