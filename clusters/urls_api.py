from django.urls import path

from . import rest

urlpatterns = [
    path("clusters/<slug:cluster>/doctor/", rest.DoctorView.as_view(), name="cluster-doctor"),
    path("clusters/<slug:cluster>/prove/", rest.ProveView.as_view(), name="cluster-prove"),
    path("nodes/", rest.NodesView.as_view(), name="nodes"),
]
