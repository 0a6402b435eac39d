"""REST addresses of alerts."""

from django.urls import path

from . import api

urlpatterns = [
    path("alerts/", api.AlertsView.as_view(), name="alerts"),
    path("alerts/<uuid:id>/", api.AlertView.as_view(), name="alert"),
    path("alerts/<uuid:id>/acknowledge/", api.AcknowledgeView.as_view(), name="alert-acknowledge"),
    path("alerts/<uuid:id>/silence/", api.SilenceView.as_view(), name="alert-silence"),
    path("alerts/<uuid:id>/resolve/", api.ResolveView.as_view(), name="alert-resolve"),
    path("alerts/<uuid:id>/members/", api.MembersView.as_view(), name="alert-members"),
    path("alerts/<uuid:id>/deliveries/", api.AlertDeliveriesView.as_view(), name="alert-deliveries"),
    path("alert-routes/", api.RoutesView.as_view(), name="alert-routes"),
    path("alert-routes/<uuid:id>/", api.RouteView.as_view(), name="alert-route"),
    path("alert-routes/<uuid:id>/test/", api.TestRouteView.as_view(), name="alert-route-test"),
    path(
        "alert-routes/<uuid:id>/deliveries/", api.RouteDeliveriesView.as_view(), name="alert-route-deliveries"
    ),
]
