from django.urls import path

from portal.configuration import api

urlpatterns = [
    path("configuration/", api.ConfigurationView.as_view(), name="configuration"),
]
