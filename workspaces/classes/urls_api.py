"""REST addresses of class launches."""

from django.urls import path

from . import api

urlpatterns = [
    path("class-launches/", api.ClassesView.as_view(), name="class-launches"),
    path("class-launches/<uuid:id>/", api.ClassView.as_view(), name="class-launch"),
    path("class-launches/<uuid:id>/stop/", api.ClassStopView.as_view(), name="class-launch-stop"),
    path("class-launches/<uuid:id>/extend/", api.ClassExtendView.as_view(), name="class-launch-extend"),
    path("class-launches/<uuid:id>/collect/", api.ClassCollectView.as_view(), name="class-launch-collect"),
]
