from django.urls import path

from quotas import views
from quotas.accounting import views as views_usage
from quotas.bookings import views as views_bookings

urlpatterns = [
    path("usage/", views_usage.usage, name="usage"),
    path("bookings/", views_bookings.calendar, name="bookings"),
    path("bookings/answer/", views_bookings.answer, name="booking-answer"),
    path("bookings/<uuid:id>/", views_bookings.booking, name="booking"),
    path("bookings/<uuid:id>/cancel/", views_bookings.cancel, name="booking-cancel"),
    path("gpus/", views.gpu_map, name="gpus"),
    path("gpus/<slug:slug>/", views.pool_map, name="pool"),
]
