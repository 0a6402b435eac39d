"""Notices of a booking: to the people of its tenant, and of borrowed runs that may have to end for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, visible_tenants
from accounts.models import Membership, Role, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from quotas.bookings.rules import in_words
from quotas.models import Booking, Claim

SUBJECT = "booking"


def notify_of(code: str, booking: Booking, by: User, preempted: Collection[UUID] = ()) -> None:
    """Notify of what somebody did (booked, changed, cancelled), in its transaction.

    People of the tenant who may launch there get a notice, and people whose borrowed runs may have to end for it.
    """
    seats = Membership.objects.filter(tenant=booking.tenant).exclude(role=Role.VIEWER)
    _notify(code, User.objects.filter(memberships__in=seats), booking, by)
    _notify("asked_back", User.objects.filter(claims__in=preempted).distinct(), booking, by)


def _notify(code: str, people: QuerySet[User], booking: Booking, by: User) -> None:
    data: dict[str, Any] = {
        "code": code,
        "by": by.get_username(),
        "pool": booking.pool.name,
        "starts_at": booking.starts_at.isoformat(),
        "ends_at": booking.ends_at.isoformat(),
    }
    notify(
        Kind.BOOKING,
        list(people.filter(is_active=True).exclude(pk=by.pk)),
        subject=SUBJECT,
        subject_id=booking.pk,
        key=f"{SUBJECT} {uuid4()}",
        data=data,
    )


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
    times = {name: in_words(datetime.fromisoformat(notice.data[name])) for name in ("starts_at", "ends_at")}
    data = {**notice.data, "tenant": booking.tenant.name, "title": booking.title, **times}
    is_past = bool(booking.cancelled_at) or booking.ends_at <= timezone.now()
    when = _("“%(title)s”: from %(starts_at)s to %(ends_at)s.")
    hint = _("Workspaces that you launch there in that time start on these GPUs, while places are left.")
    match notice.data["code"]:
        case "asked_back":
            running = Claim.objects.filter(user=user, pool=booking.pool, state=Claim.State.ADMITTED)
            is_past = is_past or not running.exists()
            title = _("GPUs of %(pool)s are booked from %(starts_at)s")
            text = _(
                "Until %(ends_at)s, your workspaces there that use borrowed GPUs may have to return them."
            )
            hint = _(
                "You will get another warning first, and files are kept. Finish by then, or move to another pool."
            )
        case "booked":
            title, text = _("%(by)s booked GPUs of %(pool)s for %(tenant)s"), when
        case "changed":
            title, text = _("%(by)s changed a booking of GPUs of %(pool)s"), when
        case _:
            is_past = False
            title = _("%(by)s cancelled a booking of GPUs of %(pool)s")
            text = _("“%(title)s”, from %(starts_at)s to %(ends_at)s, is no longer reserved.")
            hint = _("Running workspaces are not affected.")
    path, action = reverse("bookings"), _("View the calendar")
    return Words(title=title % data, text=text % data, hint=hint, path=path, action=action, is_past=is_past)
