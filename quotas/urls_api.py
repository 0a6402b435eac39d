from django.urls import path

from quotas import api
from quotas.accounting import api as api_usage
from quotas.bookings import api as api_bookings

urlpatterns = [
    path("pools/", api.PoolList.as_view(), name="pools"),
    path("flavors/", api.FlavorList.as_view(), name="flavors"),
    path("quotas/", api.QuotaList.as_view(), name="quotas"),
    path("bookings/", api_bookings.BookingsView.as_view(), name="bookings"),
    path("bookings/<uuid:id>/", api_bookings.BookingView.as_view(), name="booking"),
    path("budgets/", api_usage.BudgetList.as_view(), name="budgets"),
    path("usage/", api_usage.Usage.as_view(), name="usage"),
]
