"""Page addresses of alerts."""

from django.urls import path

from . import views, views_routes

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/routes/", views_routes.all_routes, name="alert-routes"),
    path("alerts/routes/<uuid:id>/", views_routes.one_route, name="alert-route"),
    path("alerts/routes/<uuid:id>/<str:verb>/", views_routes.act, name="alert-route-act"),
    path("alerts/<uuid:id>/", views.alert, name="alert"),
    path("alerts/<uuid:id>/<str:verb>/", views.act, name="alert-act"),
]
