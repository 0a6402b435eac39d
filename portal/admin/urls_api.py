"""REST addresses of the actions of the admin's lists."""

from django.urls import path

from . import api

urlpatterns = [
    path("admin-actions/", api.AdminActionsView.as_view(), name="admin-actions"),
    path("admin-actions/<str:of>/<str:action>/", api.AdminActionView.as_view(), name="admin-action"),
]
