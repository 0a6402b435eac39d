"""Admin page of bookings: to look at and to cancel. Owners and admins book on the calendar."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from quotas.bookings import changes as bookings
from quotas.bookings.rules import in_words
from quotas.models import Booking
from quotas.scheduling import as_gpus

State = Booking.State


class CancelBookings(Previewed[Booking]):
    name = "cancel"
    short_description = gettext_lazy("Cancel …")
    title = gettext_lazy("Cancel bookings")
    button = gettext_lazy("Cancel")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Their GPUs are no longer reserved. Running workspaces are not affected. The people of the "
                "tenant are notified."
            )
        ]

    def effects(self, actor: Actor, rows: Sequence[Booking]) -> list[Effect]:
        return [
            Effect(str(row.pk), f"{row.title} · {row.tenant}", (_lost(row),))
            if row.state in (State.UPCOMING, State.RUNNING)
            else Effect(str(row.pk), f"{row.title} · {row.tenant}", refused=_("It has ended."))
            for row in rows
        ]

    def apply(self, actor: Actor, row: Booking) -> bool:
        return bookings.cancel(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d booking is cancelled.", "%(count)d bookings are cancelled.", count) % {
            "count": count
        }


def _lost(row: Booking) -> str:
    return _("%(size)s of %(pool)s, from %(start)s to %(end)s.") % {
        "size": size_of(row),
        "pool": row.pool,
        "start": in_words(row.starts_at),
        "end": in_words(row.ends_at),
    }


def size_of(row: Booking) -> str:
    each = floatformat(as_gpus(row.units_each, row.pool.units_per_gpu), "-4")
    return _("%(places)d × %(gpus)s GPU") % {"places": row.places, "gpus": each}


class StateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [(state.value, str(state.label)) for state in State]

    def queryset(self, request: HttpRequest, rows: QuerySet[Booking]) -> QuerySet[Booking]:
        return rows.filter(Booking.in_state(str(self.value()))) if self.value() in State.values else rows


@admin.register(Booking)
class BookingPage(ReadOnlyPage[Booking]):
    purpose = gettext_lazy("GPUs reserved for a tenant for a fixed time.")
    list_display = ("title", "tenant", "pool", "size", "starts_at", "ends_at", "state_now", "created_by")
    list_filter = (StateFilter, "pool", "tenant")
    list_select_related = ("tenant", "pool", "created_by")
    search_fields = ("title", "tenant__slug", "tenant__name", "pool__slug", "created_by__username")
    date_hierarchy = "starts_at"
    ordering = ("-starts_at",)
    actions = (CancelBookings(),)
    fields = (
        "title",
        "tenant",
        "pool",
        "size",
        "starts_at",
        "ends_at",
        "created_by",
        "created_at",
        "cancelled_at",
    )
    readonly_fields = fields

    def public_address(self, obj: Booking) -> str:
        return reverse("booking", args=[obj.pk])

    def buttons(self, request: HttpRequest, obj: Booking) -> list[tuple[str, str]]:
        return [CancelBookings().as_button] if obj.state in (State.UPCOMING, State.RUNNING) else []

    @admin.display(description=gettext_lazy("size"))
    def size(self, row: Booking) -> str:
        return size_of(row)

    @admin.display(description=gettext_lazy("state"))
    def state_now(self, row: Booking) -> str:
        return str(row.state.label)
