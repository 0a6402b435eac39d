from django.urls import path

from .pages import views

urlpatterns = [
    path("volumes/", views.volumes, name="volumes"),
    path("volumes/<uuid:id>/", views.volume, name="volume"),
    path("volumes/<uuid:id>/delete/", views.delete, name="volume-delete"),
    path("volumes/<uuid:id>/restore/", views.restore, name="volume-restore"),
    path("volumes/<uuid:id>/transfer/", views.transfer, name="volume-transfer"),
    path("volumes/<uuid:id>/main/", views.make_main, name="volume-main"),
]
