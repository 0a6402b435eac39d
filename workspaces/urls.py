"""Page addresses."""

from django.urls import path

from .pages import (
    views,
    views_apps,
    views_classes,
    views_launch,
    views_schedule,
    views_service_accounts,
    views_settings,
    views_shares,
    views_templates,
    views_tenant,
    views_workspace,
)

urlpatterns = [
    path("", views.home, name="workspaces"),
    path("launch/", views_launch.launch, name="launch"),
    path("launch/answer/", views_launch.launch_answer, name="launch-answer"),
    path("launch/templates/", views_launch.save_template, name="template-save"),
    path("launch/templates/<uuid:id>/delete/", views_templates.delete, name="template-delete"),
    path("class-launches/", views_classes.classes, name="class-launches"),
    path("class-launches/<uuid:id>/", views_classes.one, name="class-launch"),
    path("class-launches/<uuid:id>/people/", views_classes.add_people, name="class-launch-people"),
    path("class-launches/<uuid:id>/collect/", views_classes.collect, name="class-launch-collect"),
    path("class-launches/<uuid:id>/<str:verb>/", views_classes.act, name="class-launch-act"),
    path("add-ssh-key/", views.add_ssh_key, name="add-ssh-key"),
    path("ssh/config/", views.ssh_config_file, name="ssh-config"),
    path("workspaces/bulk/", views.bulk, name="workspaces-bulk"),
    path("workspaces/<uuid:id>/", views_workspace.tab, {"name": "activity"}, name="workspace"),
    path("workspaces/<uuid:id>/logs/", views_workspace.tab, {"name": "logs"}, name="workspace-logs"),
    path("workspaces/<uuid:id>/settings/", views_settings.settings, name="workspace-settings"),
    path("workspaces/<uuid:id>/open/", views_workspace.open_jupyter, name="workspace-open"),
    path("workspaces/<uuid:id>/apps/", views_apps.add, name="workspace-app-add"),
    path("workspaces/<uuid:id>/apps/<int:port>/", views_apps.change, name="workspace-app"),
    path("workspaces/<uuid:id>/apps/<int:port>/open/", views_apps.open_app, name="workspace-app-open"),
    path("workspaces/<uuid:id>/shares/", views_shares.share, name="workspace-share"),
    path("workspaces/<uuid:id>/shares/<uuid:share>/end/", views_shares.end, name="workspace-share-end"),
    path("workspaces/<uuid:id>/schedule/", views_schedule.change, name="workspace-schedule"),
    path("workspaces/<uuid:id>/instead/", views_settings.instead, name="workspace-instead"),
    path("workspaces/<uuid:id>/clone/", views_settings.clone_workspace, name="workspace-clone"),
    path("workspaces/<uuid:id>/delete/", views_workspace.delete, name="workspace-delete"),
    path("workspaces/<uuid:id>/<str:verb>/", views_workspace.act, name="workspace-act"),
    path("tenants/", views_tenant.tenants, name="tenants"),
    path("tenants/<slug:slug>/", views_tenant.tenant, name="tenant"),
    path("tenants/<slug:slug>/members/", views_tenant.add_member, name="tenant-add"),
    path("tenants/<slug:slug>/members/<username:username>/", views_tenant.change_role, name="tenant-role"),
    path(
        "tenants/<slug:slug>/members/<username:username>/remove/",
        views_tenant.remove_member,
        name="tenant-remove",
    ),
    path(
        "tenants/<slug:slug>/service-accounts/", views_service_accounts.create, name="service-account-create"
    ),
    path(
        "tenants/<slug:slug>/service-accounts/<uuid:id>/",
        views_service_accounts.account,
        name="service-account",
    ),
    path(
        "tenants/<slug:slug>/service-accounts/<uuid:id>/adopt/",
        views_service_accounts.adopt,
        name="service-account-adopt",
    ),
    path(
        "tenants/<slug:slug>/service-accounts/<uuid:id>/delete/",
        views_service_accounts.delete,
        name="service-account-delete",
    ),
    path(
        "tenants/<slug:slug>/service-accounts/<uuid:id>/tokens/<uuid:token_id>/revoke/",
        views_service_accounts.revoke_token,
        name="service-account-token-revoke",
    ),
]
