from django.urls import path

from quotas import views

urlpatterns = [
    path("gpus/", views.gpu_map, name="gpus"),
    path("gpus/<slug:slug>/", views.pool_map, name="pool"),
]
