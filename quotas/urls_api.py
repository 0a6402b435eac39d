from django.urls import path

from quotas.accounting import api as api_usage
from quotas.bookings import api as api_bookings

urlpatterns = [
    path("bookings/", api_bookings.BookingsView.as_view(), name="bookings"),
    path("bookings/<uuid:id>/", api_bookings.BookingView.as_view(), name="booking"),
    path("budget-hours/", api_usage.BudgetHours.as_view(), name="budget-hours"),
    path("usage/", api_usage.Usage.as_view(), name="usage"),
]
