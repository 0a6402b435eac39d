"""Bookings over REST. Those of other tenants show that GPUs are booked, and not by whom or what for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import django_filters as filters
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor, require_owner, tenant_by_slug, visible_tenants
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import ListView, checked
from accounts.trail.trail import LastMomentFilter, MomentFilter
from quotas.bookings import changes as bookings
from quotas.bookings.rules import Wish, pool_of
from quotas.bookings.serializers import BookingBody, BookingChangeBody, BookingShape
from quotas.models import Booking

FIELDS = {"title": "title", "from": "starts_at", "to": "ends_at", "places": "places"}


class BookingFilter(filters.FilterSet):  # type: ignore[misc]
    """Filter of bookings. `from` and `to`: those that are on between these times."""

    pool = filters.CharFilter("pool__slug")
    tenant = filters.CharFilter(method="of_tenant")
    state = filters.MultipleChoiceFilter(choices=Booking.State.choices, method="in_states")

    def of_tenant(self, rows: QuerySet[Booking], _name: str, slug: str) -> QuerySet[Booking]:
        return rows.filter(tenant__in=visible_tenants(actor_of(self.request)).filter(slug=slug))

    def in_states(self, rows: QuerySet[Booking], _name: str, states: list[str]) -> QuerySet[Booking]:
        chosen = Q()
        for state in states:
            chosen |= Booking.in_state(state)
        return rows.filter(chosen)


# Named here, as `from` is a keyword in Python.
BookingFilter.base_filters["from"] = MomentFilter("ends_at", lookup_expr="gt")
BookingFilter.base_filters["to"] = LastMomentFilter("starts_at", lookup_expr="lt")


def answer(actor: Actor, booking: Booking, status: int = 200) -> Response:
    [seen] = bookings.seen_with_images(actor, [booking])
    return Response(BookingShape(seen).data, status=status)


class BookingsView(ListView):
    write_scope = Scope.WORKSPACES
    serializer_class = BookingShape
    queryset = Booking.objects.none()
    filterset_class = BookingFilter
    keyset = ("starts_at", "id")

    def get_queryset(self) -> QuerySet[Booking]:
        return bookings.in_pools(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("When GPUs are booked"),
        responses=answers({200: BookingShape(many=True)}),
    )
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        seen = bookings.seen_with_images(actor_of(request), rows)
        return self.get_paginated_response(BookingShape(seen, many=True).data)

    @extend_schema(
        summary=gettext_noop("Book GPUs of a pool (owners)"),
        description="409 `not_free` where something is in the way: `fields.next_free_at` says from when it is not.",
        request=BookingBody,
        responses=answers({201: BookingShape}, 404, 409, 422),
    )
    def post(self, request: Request) -> Response:
        actor, body = actor_of(request), checked(BookingBody, request)
        tenant = tenant_by_slug(actor, body["tenant"])
        require_owner(actor, tenant)
        wish = Wish(
            title=body["title"],
            starts_at=body["from"],
            ends_at=body["to"],
            places=body["places"],
            gpus_each=body["gpus_each"],
        )
        return answer(actor, bookings.book(actor, tenant, pool_of(body["pool"]), wish), 201)


class BookingView(APIView):
    write_scope = Scope.WORKSPACES

    @extend_schema(
        summary=gettext_noop("One booking of a tenant of yours"), responses=answers({200: BookingShape}, 404)
    )
    def get(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        return answer(actor, bookings.get(actor, id))

    @extend_schema(
        summary=gettext_noop("Change its title, time or number of places (owners)"),
        request=BookingChangeBody,
        responses=answers({200: BookingShape}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        booking = bookings.get(actor, id)
        require_owner(actor, booking.tenant)
        body = checked(BookingChangeBody, request)
        changes: dict[str, Any] = {FIELDS[name]: value for name, value in body.items()}
        return answer(actor, bookings.change(actor, booking, replace(Wish.of(booking), **changes)))

    @extend_schema(
        summary=gettext_noop("Cancel a booking, or end it now (owners)"),
        request=None,
        responses=answers({200: BookingShape}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        actor = actor_of(request)
        bookings.cancel(actor, bookings.get(actor, id))
        return answer(actor, bookings.get(actor, id))
