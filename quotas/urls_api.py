from django.urls import path

from quotas import api

urlpatterns = [
    path("pools/", api.PoolList.as_view(), name="pools"),
    path("flavors/", api.FlavorList.as_view(), name="flavors"),
    path("quotas/", api.QuotaList.as_view(), name="quotas"),
]
