from django.urls import path

from .pages import views, views_adoption, views_connections, views_files

urlpatterns = [
    path("connections/", views_connections.listed, name="connections"),
    path("connections/<uuid:id>/", views_connections.one, name="connection"),
    path("connections/<uuid:id>/delete/", views_connections.delete, name="connection-delete"),
    path("volumes/", views.volumes, name="volumes"),
    path("volumes/adopt/", views_adoption.adopt, name="volume-adopt"),
    path("volumes/<uuid:id>/confirm/", views_adoption.confirm, name="volume-confirm"),
    path("volumes/<uuid:id>/inspect/", views_adoption.inspect, name="volume-inspect"),
    path("volumes/<uuid:id>/", views.volume, name="volume"),
    path("volumes/<uuid:id>/delete/", views.delete, name="volume-delete"),
    path("volumes/<uuid:id>/restore/", views.restore, name="volume-restore"),
    path("volumes/<uuid:id>/transfer/", views.transfer, name="volume-transfer"),
    path("volumes/<uuid:id>/main/", views.make_main, name="volume-main"),
    path("volumes/<uuid:id>/snapshot/", views.snapshot, name="volume-snapshot"),
    path("volumes/<uuid:id>/publish/", views.publish, name="volume-publish"),
    path("volumes/<uuid:id>/clone/", views.clone, name="volume-clone"),
    path("volumes/<uuid:id>/files/", views_files.files, name="volume-files"),
    path("volumes/<uuid:id>/files/close/", views_files.close, name="volume-files-close"),
    path("volumes/<uuid:id>/files/folder/", views_files.new_folder, name="volume-files-folder"),
    path("volumes/<uuid:id>/files/rename/", views_files.rename, name="volume-files-rename"),
    path("volumes/<uuid:id>/files/delete/", views_files.delete, name="volume-files-delete"),
    path(
        "volumes/<uuid:id>/snapshots/<uuid:snapshot>/delete/",
        views.delete_snapshot,
        name="volume-snapshot-delete",
    ),
]
