"""Notices of a booking: to the people of its tenant, and of borrowed runs that may have to end for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.access import Actor, visible_tenants
from accounts.models import Membership, Role, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from quotas.models import Booking, Claim

SUBJECT = "booking"


def booked(by: User, booking: Booking, asked_back: Collection[UUID]) -> None:
    """Notify of a booking, in its transaction."""
    _tell("booked", _people_of(booking, by), booking, by)
    _tell_who_borrows(by, booking, asked_back)


def changed(by: User, booking: Booking, asked_back: Collection[UUID]) -> None:
    """Notify of a new time or size, in the transaction of the change."""
    _tell("changed", _people_of(booking, by), booking, by)
    _tell_who_borrows(by, booking, asked_back)


def cancelled(by: User, booking: Booking) -> None:
    _tell("cancelled", _people_of(booking, by), booking, by)


def _tell_who_borrows(by: User, booking: Booking, asked_back: Collection[UUID]) -> None:
    borrowing = User.objects.filter(claims__in=asked_back, is_active=True).distinct()
    _tell("asked_back", [person for person in borrowing if person != by], booking, by)


def _people_of(booking: Booking, by: User) -> list[User]:
    """Return those who may launch there, without the person who acted."""
    seats = Membership.objects.filter(tenant=booking.tenant, user__is_active=True).exclude(role=Role.VIEWER)
    return [seat.user for seat in seats.exclude(user=by).select_related("user")]


def _tell(code: str, people: Iterable[User], booking: Booking, by: User) -> None:
    data: dict[str, Any] = {
        "code": code,
        "by": by.get_username(),
        "pool": booking.pool.name,
        "starts_at": booking.starts_at.isoformat(),
        "ends_at": booking.ends_at.isoformat(),
    }
    notify(
        Kind.BOOKING,
        list(people),
        subject=SUBJECT,
        subject_id=booking.pk,
        key=f"{SUBJECT} {uuid4()}",
        data=data,
    )


# --- Words


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Return words for each notice: others than the tenant's people see only that the GPUs are booked."""
    rows = Booking.objects.filter(pk__in={notice.subject_id for notice in notices})
    bookings = {booking.pk: booking for booking in rows.select_related("tenant", "pool")}
    seen = set(visible_tenants(Actor(user)).values_list("pk", flat=True))
    found = {}
    for notice in notices:
        booking = bookings.get(notice.subject_id)
        if booking and (booking.tenant_id in seen or notice.data["code"] == "asked_back"):
            found[notice.pk] = _words(notice, booking, user)
    return found


def _words(notice: Notice, booking: Booking, user: User) -> Words:
    data = {**notice.data, "tenant": booking.tenant.name, "title": booking.title}
    data |= {name: _in_words(notice.data[name]) for name in ("starts_at", "ends_at")}
    is_past = bool(booking.cancelled_at) or booking.ends_at <= timezone.now()
    if notice.data["code"] == "asked_back":
        still_runs = Claim.objects.filter(user=user, pool=booking.pool, state=Claim.State.ADMITTED).exists()
        return Words(
            title=_("GPUs of %(pool)s are booked from %(starts_at)s") % data,
            text=_("Until %(ends_at)s, your workspaces there that use borrowed GPUs may have to return them.")
            % data,
            hint=_(
                "You will get another warning first, and files are kept. Finish by then, or move to another pool."
            ),
            path=reverse("bookings"),
            action=_("View the calendar"),
            is_past=is_past or not still_runs,
        )
    if notice.data["code"] in ("booked", "changed"):
        titles = {
            "booked": _("%(by)s booked GPUs of %(pool)s for %(tenant)s"),
            "changed": _("%(by)s changed a booking of GPUs of %(pool)s"),
        }
        title = titles[notice.data["code"]] % data
        text = _("“%(title)s”: from %(starts_at)s to %(ends_at)s.") % data
        hint = _("Workspaces that you launch there in that time start on these GPUs, while places are left.")
    else:
        title = _("%(by)s cancelled a booking of GPUs of %(pool)s") % data
        text = _("“%(title)s”, from %(starts_at)s to %(ends_at)s, is no longer reserved.") % data
        hint = _("Running workspaces are not affected.")
    return Words(
        title=title,
        text=text,
        hint=hint,
        path=reverse("bookings"),
        action=_("View the calendar"),
        is_past=is_past and notice.data["code"] != "cancelled",
    )


def _in_words(moment: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(moment)), _("j M Y, H:i T"))
