"""Page addresses."""

from django.urls import path

from . import views, views_tenant

urlpatterns = [
    path("", views.home, name="workspaces"),
    path("launch/", views.launch, name="launch"),
    path("launch/answer/", views.launch_answer, name="launch-answer"),
    path("add-ssh-key/", views.add_ssh_key, name="add-ssh-key"),
    path("workspaces/<uuid:id>/", views.activity, name="workspace"),
    path("workspaces/<uuid:id>/logs/", views.logs, name="workspace-logs"),
    path("workspaces/<uuid:id>/settings/", views.settings, name="workspace-settings"),
    path("workspaces/<uuid:id>/jupyter/", views.jupyter, name="workspace-jupyter"),
    path("workspaces/<uuid:id>/delete/", views.delete, name="workspace-delete"),
    path("workspaces/<uuid:id>/<str:verb>/", views.act, name="workspace-act"),
    path("tenants/", views_tenant.tenants, name="tenants"),
    path("tenants/<slug:slug>/", views_tenant.tenant, name="tenant"),
    path("tenants/<slug:slug>/members/", views_tenant.add_member, name="tenant-add"),
    path("tenants/<slug:slug>/members/<username:username>/", views_tenant.change_role, name="tenant-role"),
    path(
        "tenants/<slug:slug>/members/<username:username>/remove/",
        views_tenant.remove_member,
        name="tenant-remove",
    ),
]
