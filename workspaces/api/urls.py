"""REST addresses of workspaces."""

from django.urls import path

from . import api, declared, schedule, shares
from .logs import LogsView
from .templates import TemplatesView, TemplateView

urlpatterns = [
    path("workspaces/", api.WorkspacesView.as_view(), name="workspaces"),
    path("workspaces/<uuid:id>/", api.WorkspaceView.as_view(), name="workspace"),
    path("workspaces/<uuid:id>/start/", api.StartView.as_view(), name="workspace-start"),
    path("workspaces/<uuid:id>/stop/", api.StopView.as_view(), name="workspace-stop"),
    path("workspaces/<uuid:id>/restart/", api.RestartView.as_view(), name="workspace-restart"),
    path("workspaces/<uuid:id>/events/", api.EventsView.as_view(), name="workspace-events"),
    path("workspaces/<uuid:id>/logs/", LogsView.as_view(), name="workspace-logs"),
    path("workspaces/<uuid:id>/jupyter/", api.JupyterView.as_view(), name="workspace-jupyter"),
    path("templates/", TemplatesView.as_view(), name="templates"),
    path("templates/<uuid:id>/", TemplateView.as_view(), name="template"),
    path("workspaces/<uuid:id>/apps/", declared.AppsView.as_view(), name="workspace-apps"),
    path("workspaces/<uuid:id>/apps/<int:port>/", declared.AppView.as_view(), name="workspace-app"),
    path("workspaces/<uuid:id>/shares/", shares.SharesView.as_view(), name="workspace-shares"),
    path("workspaces/<uuid:id>/shares/<uuid:share>/", shares.ShareView.as_view(), name="workspace-share"),
    path("workspaces/<uuid:id>/schedule/", schedule.ScheduleView.as_view(), name="workspace-schedule"),
    path("estimate/", api.EstimateView.as_view(), name="estimate"),
    path("workspaces/<uuid:id>/extend/", api.ExtendView.as_view(), name="workspace-extend"),
    path("workspaces/<uuid:id>/keep-alive/", api.KeepAliveView.as_view(), name="workspace-keep-alive"),
    path("workspaces/<uuid:id>/clone/", api.CloneView.as_view(), name="workspace-clone"),
]
