from django.urls import path

from accounts.notices import views

urlpatterns = [
    path("", views.notices, name="notices"),
    path("read/", views.read_all, name="notices-read"),
    path("settings/", views.settings, name="notices-settings"),
    path("<uuid:id>/", views.open_one, name="notice"),
    path("unsubscribe/<str:token>/", views.unsubscribe, name="notices-unsubscribe"),
]
