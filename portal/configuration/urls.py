"""REST addresses of what admins configure. Lists that everybody reads are views of other rooms: POST is added here."""

from django.urls import path

from accounts.rest.urls import UsernameConverter
from clusters.rest import ClustersView
from portal.configuration import api
from portal.configuration.kinds import BY_NAME
from portal.configuration.views import many, one
from quotas.accounting.api import BudgetList
from quotas.api import FlavorList, PoolList, QuotaList
from workspaces.api.api import ImagesView

__all__ = ["UsernameConverter"]  # registered by its module

log_limit = BY_NAME["log_limits"]

urlpatterns = [
    path("configuration/", api.ConfigurationView.as_view(), name="configuration"),
    path("clusters/", many(BY_NAME["clusters"], ClustersView), name="clusters"),
    path("clusters/<slug:cluster>/", one(BY_NAME["clusters"]), name="cluster"),
    path("pools/", many(BY_NAME["pools"], PoolList), name="pools"),
    path("pools/<slug:pool>/", one(BY_NAME["pools"]), name="pool"),
    path("flavors/", many(BY_NAME["flavors"], FlavorList), name="flavors"),
    path("flavors/<slug:flavor>/", one(BY_NAME["flavors"]), name="flavor"),
    path("images/", many(BY_NAME["images"], ImagesView), name="images"),
    path("images/<slug:image>/", one(BY_NAME["images"]), name="image"),
    path("tenants/<slug:slug>/", one(BY_NAME["tenants"]), name="tenant"),
    path("quotas/", many(BY_NAME["quotas"], QuotaList), name="quotas"),
    path("quotas/<slug:slug>/<slug:pool>/", one(BY_NAME["quotas"]), name="quota"),
    path("limits/", many(BY_NAME["limits"]), name="limits"),
    path("limits/<slug:slug>/", one(BY_NAME["limits"]), name="limit"),
    path("log-limits/", many(log_limit), name="log-limits"),
    path("log-limits/<slug:slug>/", one(log_limit), name="log-limit"),
    path("budgets/", many(BY_NAME["budgets"], BudgetList), name="budgets"),
    path("budgets/<slug:slug>/", one(BY_NAME["budgets"]), name="budget"),
    path(
        "budgets/<slug:slug>/<username:username>/",
        one(BY_NAME["budgets"], "budgets_of_person"),
        name="budget-of-person",
    ),
]
