from django.urls import path

from . import rest

urlpatterns = [
    path("clusters/<slug:cluster>/doctor/", rest.DoctorView.as_view(), name="cluster-doctor"),
    path("clusters/<slug:cluster>/prove/", rest.ProveView.as_view(), name="cluster-prove"),
    path("unexplained-messages/", rest.UnexplainedMessagesView.as_view(), name="unexplained-messages"),
    path(
        "unexplained-messages/<slug:digest>/",
        rest.UnexplainedMessageView.as_view(),
        name="unexplained-message",
    ),
    path("nodes/", rest.NodesView.as_view(), name="nodes"),
]
