"""Rules for bookings: of form, time, quota and room, each with what to do instead."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Self
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.errors import Conflict, Invalid
from accounts.models import Tenant
from accounts.text import is_visible
from quotas import pool_state, sharing
from quotas.bookings.free_slots import FreeSlots, units_of
from quotas.models import Booking, Pool
from quotas.pools.nodes import whole_nodes
from quotas.scheduling import Booked, PoolState, Room, as_gpus, too_large

AHEAD = timedelta(days=90)
SHORTEST, LONGEST = timedelta(minutes=15), timedelta(days=30)
# A booking from now on names the present minute, which has begun before.
JUST_NOW = timedelta(minutes=1)
MOST_PLACES, LONGEST_TITLE = 500, 120
# Most bookings of one tenant in one pool that are not over: every pass over the pool lays all of them out.
MOST_BOOKINGS = 100


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A wanted booking. Each place is for one run, on one node."""

    title: str
    starts_at: datetime
    ends_at: datetime
    places: int
    gpus_each: Fraction

    def __post_init__(self) -> None:
        """Convert to UTC: between two local times Python ignores a change of the clock. Tidy the title."""
        object.__setattr__(self, "title", " ".join(self.title.split()))
        object.__setattr__(self, "starts_at", self.starts_at.astimezone(UTC))
        object.__setattr__(self, "ends_at", self.ends_at.astimezone(UTC))

    @classmethod
    def of(cls, booking: Booking) -> Self:
        return cls(
            title=booking.title,
            starts_at=booking.starts_at,
            ends_at=booking.ends_at,
            places=booking.places,
            gpus_each=booking.pool.gpus(booking.units_each),
        )


class Taken(Exception):
    """The time is not free; `next_free_when_taken` turns it into NotFree."""

    def __init__(self, wanted: Booked, slots: FreeSlots) -> None:
        self.wanted, self.slots = wanted, slots


@contextmanager
def next_free_when_taken() -> Iterator[None]:
    """Turn Taken into NotFree after the lock is released: the search is longer than others should wait."""
    try:
        yield
    except Taken as taken:
        wanted, slots = taken.wanted, taken.slots
        next_free = slots.next_free(wanted, slots.state.now + AHEAD)
        raise NotFree(wanted, next_free, slots.most_places(wanted)) from None


class NotFree(Conflict):
    """The time is not free. Holds the next free start, and the places free at the wanted time."""

    def __init__(self, wanted: Booked, next_free_at: datetime | None, places_free: int) -> None:
        self.next_free_at, self.places_free = next_free_at, places_free
        times = {"start": in_words(wanted.starts_at), "end": in_words(wanted.ends_at)}
        message = _("Not all of this is free from %(start)s to %(end)s.") % times
        fields = {"from": [message]}
        if next_free_at is not None:
            fields["next_free_at"] = [next_free_at.isoformat()]
        super().__init__("not_free", message, self._hint(), fields=fields)

    def _hint(self) -> str:
        if self.next_free_at is not None:
            text = _("The next free slot of that size and length starts at %(start)s.")
            hint = text % {"start": in_words(self.next_free_at)}
        else:
            text = _("No slot of that size and length is free in the next %(days)d days.")
            hint = text % {"days": AHEAD.days}
        if not self.places_free:
            return hint
        fewer = ngettext(
            "At the time you ask for, %(count)d place is free.",
            "At the time you ask for, %(count)d places are free.",
            self.places_free,
        )
        return f"{hint} {fewer % {'count': self.places_free}}"


def pool_of(slug: str) -> Pool:
    pool = Pool.objects.select_related("cluster").filter(slug=slug).first() if "\0" not in slug else None
    if pool is None:
        text = _("There is no pool “%(slug)s”. See the list of pools.") % {"slug": slug}
        raise _invalid("no_such_pool", "pool", text, _("Choose another pool."))
    return pool


def check(tenant: Tenant, pool: Pool, wish: Wish) -> str:
    """Raise what booking now would raise. Return a warning of runs to stop by then, or "". Writes nothing."""
    with next_free_when_taken():
        wanted, slots = free(tenant, pool, wish, uuid.uuid4())
    held, limit = slots.held_meanwhile(wanted), slots.state.tenants[tenant.pk].limit_units or 0
    if held + units_of(wanted) <= limit:
        return ""
    amounts = {"held": as_gpus(held, pool.units_per_gpu), "limit": as_gpus(limit, pool.units_per_gpu)}
    return _(
        "Workspaces of %(tenant)s that may still run then use %(held)s of its %(limit)s GPUs here. Stop "
        "them before, or give them an end. Otherwise not all places can be used."
    ) % {"tenant": tenant.name, **amounts}


def free(
    tenant: Tenant, pool: Pool, wish: Wish, booking_id: UUID, *, begins_at: datetime | None = None
) -> tuple[Booked, FreeSlots]:
    """Raise Taken if the time is not free, a Refusal if it never is. `begins_at`: start that a change may keep."""
    _refuse_form(wish)
    _refuse_times(wish, begins_at)
    _refuse_pool(pool)
    state = _read(pool, tenant)
    wanted = Booked(
        booking_id, tenant.pk, wish.starts_at, wish.ends_at, wish.places, _units_each(pool, wish.gpus_each)
    )
    _refuse_what_never_fits(pool, tenant, state, wanted)
    _refuse_too_many(state, wanted)
    slots = FreeSlots(state)
    if not slots.is_free(wanted):
        raise Taken(wanted, slots)
    return wanted, slots


def _read(pool: Pool, tenant: Tenant) -> PoolState:
    state = pool_state.read(pool, [])
    return replace(state, tenants={**state.tenants, **pool_state.tenant_quotas(pool, {tenant.pk})})


def _units_each(pool: Pool, gpus_each: Fraction) -> int:
    try:
        return sharing.of(pool).portion(pool, gpus_each, None).units
    except Invalid as refusal:
        raise Invalid(
            refusal.code, refusal.message, refusal.hint, fields={"gpus_each": refusal.fields.get("gpus", [])}
        ) from None


def _refuse_pool(pool: Pool) -> None:
    if not pool.has_gpus:
        raise _invalid("no_gpus_in_pool", "pool", _("This pool has no GPUs."), _("Choose a pool with GPUs."))
    if not pool.is_open:
        raise _invalid(
            "pool_closed", "pool", _("This pool is out of use."), _("Choose another pool, or ask your admin.")
        )


def _refuse_what_never_fits(pool: Pool, tenant: Tenant, state: PoolState, wanted: Booked) -> None:
    nodes = list(whole_nodes(pool))
    is_counted = nodes and not any(room.cards for room in nodes)
    if is_counted and (reason := too_large(nodes, Room(wanted.units_each), pool.units_per_gpu)):
        raise _invalid(
            reason.code,
            "gpus_each",
            _("No node of this pool has more than %(largest_gpus)s GPUs.") % reason.data,
            _("Request fewer GPUs each, or choose another pool."),
        )
    own = state.tenants[tenant.pk].nominal_units or 0
    if units_of(wanted) > own:
        gpus, most = (as_gpus(units, pool.units_per_gpu) for units in (units_of(wanted), own))
        raise _invalid(
            "quota_exceeded",
            "places",
            _("This is %(gpus)s GPUs in total, but %(tenant)s has only %(most)s of its own in this pool.")
            % {"gpus": gpus, "tenant": tenant.name, "most": most},
            _("Book less, or ask your admin for more."),
        )


def _refuse_too_many(state: PoolState, wanted: Booked) -> None:
    others = [one for one in state.bookings if one.tenant == wanted.tenant and one.booking != wanted.booking]
    if len(others) >= MOST_BOOKINGS:
        raise Conflict(
            "too_many_bookings",
            _("Your team has %(count)d current or future bookings of this pool.") % {"count": len(others)},
            _("Book longer times or more places at once, or cancel bookings that nobody needs."),
        )


def _refuse_times(wish: Wish, begins_at: datetime | None) -> None:
    now, length = timezone.now(), wish.ends_at - wish.starts_at
    if wish.starts_at != begins_at and wish.starts_at < now - JUST_NOW:
        raise _invalid("in_the_past", "from", _("This time is in the past."), _("Choose a later one."))
    if wish.starts_at > now + AHEAD:
        text = _("Bookings begin at most %(days)d days from now.") % {"days": AHEAD.days}
        raise _invalid("too_far_ahead", "from", text, _("Choose an earlier time."))
    if length < SHORTEST:
        text = _("A booking lasts at least %(minutes)d minutes.") % {"minutes": SHORTEST.seconds // 60}
        raise _invalid("too_short", "to", text, _("Choose a later end."))
    if length > LONGEST:
        text = _("A booking lasts at most %(days)d days.") % {"days": LONGEST.days}
        raise _invalid("too_long", "to", text, _("Choose an earlier end."))


def refuse_change(booking: Booking, wish: Wish) -> None:
    """Refuse a change of a booking that is over, or of a start that has passed."""
    _refuse_form(wish)
    now = timezone.now()
    if booking.cancelled_at or booking.ends_at <= now:
        raise Conflict("booking_over", _("This booking has ended."), _("Book again."))
    if wish.starts_at != booking.starts_at and booking.starts_at <= now:
        raise _invalid(
            "began_already",
            "from",
            _("This booking has already started."),
            _("You can change its end, but not its start."),
        )
    if wish.ends_at <= now:
        raise _invalid(
            "in_the_past", "to", _("This time is in the past."), _("Cancel the booking to end it now.")
        )


def is_less(wish: Wish, was: Wish) -> bool:
    """Return True if the wish needs no more than before, so that the pool's state does not matter."""
    return (
        wish.starts_at >= was.starts_at
        and wish.ends_at <= was.ends_at
        and 1 <= wish.places <= was.places
        and wish.ends_at - wish.starts_at >= SHORTEST
    )


def _refuse_form(wish: Wish) -> None:
    if not 1 <= len(wish.title) <= LONGEST_TITLE or not is_visible(wish.title):
        text = _("Give it a title of at most %(most)d characters, so that people know what it is for.")
        raise _invalid("invalid_title", "title", text % {"most": LONGEST_TITLE}, _("Choose another title."))
    if not 1 <= wish.places <= MOST_PLACES:
        text = _("Book 1 to %(most)d places.") % {"most": MOST_PLACES}
        raise _invalid("invalid_places", "places", text, _("Choose another number."))


def in_words(moment: datetime) -> str:
    """Return the time in the reader's time zone, with the zone."""
    return date_format(timezone.localtime(moment), _("j M Y, H:i T"))


def _invalid(code: str, field: str, message: str, hint: str) -> Invalid:
    return Invalid(code, message, hint, fields={field: [message]})
