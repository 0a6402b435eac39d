"""The calendar of bookings, and the pages that book, change and cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor, owned_tenants, require_owner
from accounts.errors import SHOWN_IN_PLACE, NotAllowed, Refusal
from accounts.rest.actors import actor_of
from accounts.trail import audit
from quotas.bookings import changes as bookings
from quotas.bookings.calendar import Week, weeks_of
from quotas.bookings.forms import BookingForm, ChangeForm
from quotas.bookings.rules import NotFree, check, in_words
from quotas.models import Booking
from quotas.scheduling import as_gpus
from quotas.views import with_gpus

State = Booking.State


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def calendar(request: HttpRequest) -> HttpResponse:
    """Show what is booked in a week; owners book here."""
    actor = actor_of(request)
    if request.method != "POST":
        return _calendar_page(request, actor, BookingForm(actor, asked=request.GET))
    _require_an_owner(actor)
    form = BookingForm(actor, request.POST)
    if not form.is_valid():
        return _calendar_page(request, actor, form, status=422)
    tenant, pool, wish = form.asked()
    try:
        booking = bookings.book(actor, tenant, pool, wish)
    except SHOWN_IN_PLACE as refusal:
        audit.record_refusal(request, actor, refusal)
        said = _refused(form, refusal)
        form.refuse(refusal)
        return _calendar_page(request, actor, form, status=refusal.status, **said)
    messages.success(request, _("Booked: “%(title)s”.") % {"title": booking.title})
    return redirect(_address_of(booking))


@login_required
@require_POST
def answer(request: HttpRequest) -> HttpResponse:
    """Check if the form as filled in could be booked; writes nothing."""
    actor = actor_of(request)
    _require_an_owner(actor)
    data = request.POST.copy()
    if not data.get("title", "").strip():
        data["title"] = "-"  # people may fill it in last
    form = BookingForm(actor, data)
    said: dict[str, Any] = {}
    if form.is_valid():
        try:
            said = {"is_free": True, "see_to": check(*form.asked())}
        except SHOWN_IN_PLACE as refusal:
            said = _refused(form, refusal)
    return render(request, "quotas/_booking_answer.html", said)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def booking(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show a booking of one of the person's tenants; its owners change it here."""
    actor = actor_of(request)
    found = bookings.get(actor, id)
    [seen] = bookings.seen_with_images(actor, [found])
    form, said, status = ChangeForm(initial=ChangeForm.initial_of(found)), {}, 200
    if request.method == "POST":
        require_owner(actor, found.tenant)
        form = ChangeForm(request.POST)
        status = 422
        if form.is_valid():
            try:
                bookings.change(actor, found, form.wish(found))
            except SHOWN_IN_PLACE as refusal:
                audit.record_refusal(request, actor, refusal)
                form.refuse(refusal)
                said, status = {"refusal": refusal}, refusal.status
            else:
                messages.success(request, _("Saved."))
                return redirect("booking", id)
    may_change = seen.may_change and found.state in (State.UPCOMING, State.RUNNING)
    context = {
        "section": "bookings",
        "seen": seen,
        "booking": found,
        "week": _address_of(found),
        "form": form if may_change else None,
        "gpus_each": as_gpus(found.units_each, found.pool.units_per_gpu),
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "quotas/booking.html", context | said, status=status)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show the effect first, then cancel."""
    actor = actor_of(request)
    found = bookings.get(actor, id)
    require_owner(actor, found.tenant)
    if request.method == "POST":
        if bookings.cancel(actor, found):
            messages.success(request, _("Cancelled: “%(title)s”.") % {"title": found.title})
        return redirect(_address_of(found))
    return render(request, "quotas/booking_cancel.html", {"section": "bookings", "booking": found})


def _calendar_page(
    request: HttpRequest, actor: Actor, form: BookingForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    week = Week.of(request.GET.get("week", ""))
    pools = list(with_gpus())
    may_book = owned_tenants(actor).exists()
    context = {
        "section": "bookings",
        "week": week,
        "today": timezone.localdate(),
        "coming": bookings.next_after(actor, pools, max(timezone.now(), week.midnights[0])),
        "pools": weeks_of(actor, pools, week),
        "form": form if may_book else None,
        "zone": timezone.get_current_timezone_name(),
        **more,
    }
    return render(request, "quotas/bookings.html", context, status=status)


def _require_an_owner(actor: Actor) -> None:
    if not owned_tenants(actor).exists():
        raise NotAllowed(
            "owners_only", _("Only owners of a tenant can book GPUs."), _("Ask an owner of your tenant.")
        )


def _refused(form: BookingForm, refusal: Refusal) -> dict[str, Any]:
    """Return the refusal, and the address of the next free time."""
    said: dict[str, Any] = {"refusal": refusal}
    if isinstance(refusal, NotFree) and refusal.next_free_at is not None:
        said["next_free"] = in_words(refusal.next_free_at)
        week = timezone.localdate(refusal.next_free_at).isoformat()
        said["take_it"] = f"{reverse('bookings')}?week={week}&{form.query_at(refusal.next_free_at)}#book"
    return said


def _address_of(found: Booking) -> str:
    return f"{reverse('bookings')}?week={timezone.localdate(found.starts_at).isoformat()}"
