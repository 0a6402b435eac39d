"""REST addresses of volumes."""

from django.urls import path

from . import api, api_connections, api_files

urlpatterns = [
    path("connections/", api_connections.ConnectionsView.as_view(), name="connections"),
    path("connections/<uuid:id>/", api_connections.ConnectionView.as_view(), name="connection"),
    path("volumes/", api.VolumesView.as_view(), name="volumes"),
    path("volumes/adopt/", api.AdoptView.as_view(), name="volume-adopt"),
    path("volumes/<uuid:id>/confirm/", api.ConfirmView.as_view(), name="volume-confirm"),
    path("volumes/<uuid:id>/inspect/", api.InspectView.as_view(), name="volume-inspect"),
    path("volumes/<uuid:id>/", api.VolumeView.as_view(), name="volume"),
    path("volumes/<uuid:id>/restore/", api.RestoreView.as_view(), name="volume-restore"),
    path("volumes/<uuid:id>/transfer/", api.TransferView.as_view(), name="volume-transfer"),
    path("volumes/<uuid:id>/snapshot/", api.SnapshotView.as_view(), name="volume-snapshot"),
    path("volumes/<uuid:id>/snapshots/", api.SnapshotsView.as_view(), name="volume-snapshots"),
    path(
        "volumes/<uuid:id>/snapshots/<uuid:snapshot>/",
        api.OneSnapshotView.as_view(),
        name="volume-one-snapshot",
    ),
    path("volumes/<uuid:id>/publish/", api.PublishView.as_view(), name="volume-publish"),
    path(
        "volumes/<uuid:id>/files-session/", api_files.FilesSessionView.as_view(), name="volume-files-session"
    ),
    path("volumes/<uuid:id>/files/", api_files.FilesView.as_view(), name="volume-files"),
    path("volumes/<uuid:id>/files/content/", api_files.ContentView.as_view(), name="volume-files-content"),
    path("volumes/<uuid:id>/clone/", api.CloneView.as_view(), name="volume-clone"),
]
