"""What of a pool can be booked: is it free over that time, and if not, from when. Pure: no database, no clock.

A booking is not tied to nodes, but each of its places must fit on one. So all places are laid out on the nodes as
they are without our runs, beside the runs that will still be there: larger ones first and earlier ones first, each
where least is left over. A run without a known end is always there. Not in the way is what can be asked back: runs
beyond what is their tenant's own, the youngest first, for as long as its older ones go on.

Where GPUs are cut by memory and cores, which run is on which GPU is not known: there a run takes whole ones, and
places that are parts of a GPU share those of their own booking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import ceil
from uuid import UUID

from quotas.scheduling import Booked, NodeState, PoolState, Run

FOREVER = datetime.max.replace(tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Span:
    """So many units from one time to another."""

    starts_at: datetime
    ends_at: datetime
    units: int


@dataclass
class Lane:
    """Something of which only so much can be taken at once: a node's units, or a tenant's quota."""

    units: int
    taken: list[Span] = field(default_factory=list)

    def free(self, starts_at: datetime, ends_at: datetime) -> int:
        """What is free all of that time."""
        steps = {span.starts_at for span in self.taken if starts_at < span.starts_at < ends_at}
        return min(map(self.free_at, {starts_at, *steps}))

    def free_at(self, moment: datetime) -> int:
        return self.units - sum(span.units for span in self.taken if span.starts_at <= moment < span.ends_at)


class FreeSlots:
    """What can be booked of a pool as it is now."""

    def __init__(self, state: PoolState) -> None:
        self.state = state
        self.runs = [run for node in state.nodes for run in node.runs]
        self.cuts_cards = any(node.without_ours.cards for node in state.nodes)
        self.own = {run.claim: since for run, since in _own_since(state, self.runs)}

    def is_free(self, wanted: Booked) -> bool:
        """Whether it can be kept free beside the other bookings, and the tenant may have it beside its own ones.

        An earlier version of the same booking is not in its way.
        """
        return self._within_quota(wanted) and self._has_room(wanted)

    def next_free(self, wanted: Booked, latest: datetime) -> datetime | None:
        """The earliest start from the wanted one on, at which as much is free for as long; to the minute.

        Room is only gained when something ends, so no other times need to be tried.
        """
        ends = chain(
            (booked.ends_at for booked in self._others(wanted)),
            (run.ends_at for run in self.runs if run.ends_at),
        )
        minutes = {_whole_minute(end) for end in ends}
        later = sorted(start for start in minutes if wanted.starts_at < start <= latest)
        starts = chain([wanted.starts_at], later)
        return next((start for start in starts if self.is_free(moved(wanted, start))), None)

    def most_places(self, wanted: Booked) -> int:
        """How many places of that size are free at the wanted time, if not all of them."""
        fewer = range(wanted.places - 1, 0, -1)
        return next((places for places in fewer if self.is_free(replace(wanted, places=places))), 0)

    def asked_back(self, wanted: Booked) -> tuple[UUID, ...]:
        """Runs on borrowed units that may have to end for it: none where there is room beside them all."""
        borrowed = tuple(
            run.claim
            for run in self.runs
            if run.booking is None
            and _end(run) > wanted.starts_at
            and self.own.get(run.claim, FOREVER) > wanted.starts_at
        )
        return () if not borrowed or self._has_room(wanted, borrowed_stay=True) else borrowed

    def held_meanwhile(self, wanted: Booked) -> int:
        """Units of the tenant's own runs that may still be there: these count against its quota, too."""
        return sum(
            run.takes.units
            for run in self.runs
            if run.tenant == wanted.tenant
            and run.in_pool
            and run.booking is None
            and _end(run) > wanted.starts_at
        )

    def _within_quota(self, wanted: Booked) -> bool:
        limit = self.state.tenants[wanted.tenant].limit_units
        own = [_span(booked) for booked in self._others(wanted) if booked.tenant == wanted.tenant]
        return limit is None or Lane(limit, own).free(wanted.starts_at, wanted.ends_at) >= units_of(wanted)

    def _has_room(self, wanted: Booked, *, borrowed_stay: bool = False) -> bool:
        bookings = [*self._others(wanted), wanted]
        return all(
            self._lay_out(some, wanted, self._lanes(bookings, borrowed_stay=borrowed_stay))
            for some in ([wanted], bookings)  # where it does not fit alone, the others need not be laid out
        )

    def _lay_out(self, bookings: Iterable[Booked], wanted: Booked, lanes: list[Lane]) -> bool:
        in_use = Counter(run.booking for run in self.runs)
        for booked in sorted(bookings, key=lambda one: (one.starts_at, one.booking)):
            count, units = self._pieces(booked, booked.places - in_use[booked.booking])
            for _piece in range(count):
                if not _take(lanes, booked, units) and _overlap(booked, wanted):
                    return False
        return True

    def _lanes(self, bookings: Iterable[Booked], *, borrowed_stay: bool) -> list[Lane]:
        """The nodes with the runs that are in the way. A run in a booking's place keeps the place where it is."""
        now = self.state.now
        ends: dict[UUID | None, datetime] = {booked.booking: booked.ends_at for booked in bookings}
        lanes = []
        for node in self.state.nodes:
            lane = Lane(self._whole(node))
            for run in node.runs:
                since = now if borrowed_stay or run.booking in ends else self.own.get(run.claim, FOREVER)
                until = max(_end(run), ends.get(run.booking, now))
                if since < until:
                    lane.taken.append(Span(since, until, self._takes(run)))
            lanes.append(lane)
        return lanes

    def _whole(self, node: NodeState) -> int:
        if not self.cuts_cards:
            return node.without_ours.units
        return self.state.units_per_gpu * sum(card.cores_percent >= 100 for card in node.without_ours.cards)

    def _takes(self, run: Run) -> int:
        return self.state.units_per_gpu * len(run.takes.cards) if self.cuts_cards else run.takes.units

    def _pieces(self, booked: Booked, places: int) -> tuple[int, int]:
        """How many times how many units so many of its places take, each time on one node."""
        per_gpu = self.state.units_per_gpu
        if not self.cuts_cards:
            return places, booked.units_each
        if booked.units_each > per_gpu:
            return places, per_gpu * ceil(booked.units_each / per_gpu)
        return ceil(places / (per_gpu // booked.units_each)), per_gpu

    def _others(self, wanted: Booked) -> Iterator[Booked]:
        return (booked for booked in self.state.bookings if booked.booking != wanted.booking)


def _take(lanes: list[Lane], booked: Booked, units: int) -> bool:
    """On the node where least is free when it begins. False: no node has room all that time."""
    fullest_first = sorted(
        (free, number)
        for number, lane in enumerate(lanes)
        if (free := lane.free_at(booked.starts_at)) >= units
    )
    for _free, number in fullest_first:
        if lanes[number].free(booked.starts_at, booked.ends_at) >= units:
            lanes[number].taken.append(Span(booked.starts_at, booked.ends_at, units))
            return True
    return False


def _own_since(state: PoolState, runs: Iterable[Run]) -> Iterator[tuple[Run, datetime]]:
    """From when on each run is within what is its tenant's own, and so cannot be asked back.

    A tenant's older runs come first. Once enough of them have ended, a run that was borrowed no longer is.
    """
    older: defaultdict[UUID, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.booking is None, run.admitted_at, run.claim)):
        yield run, _own_from(run, older[run.tenant], state)
        if run.in_pool:
            older[run.tenant].append(run)


def _own_from(run: Run, older: Iterable[Run], state: PoolState) -> datetime:
    quota = state.tenants.get(run.tenant)
    if not run.in_pool or quota is None or quota.nominal_units is None:
        return state.now
    held = run.takes.units + sum(one.takes.units for one in older)
    if held <= quota.nominal_units:
        return state.now
    for one in sorted(older, key=_end):
        held -= one.takes.units
        if held <= quota.nominal_units:
            return _end(one)
    return FOREVER


def units_of(booked: Booked) -> int:
    return booked.places * booked.units_each


def _span(booked: Booked) -> Span:
    return Span(booked.starts_at, booked.ends_at, units_of(booked))


def _end(run: Run) -> datetime:
    return run.ends_at or FOREVER


def _overlap(one: Booked, other: Booked) -> bool:
    return one.starts_at < other.ends_at and other.starts_at < one.ends_at


def moved(wanted: Booked, starts_at: datetime) -> Booked:
    return replace(wanted, starts_at=starts_at, ends_at=starts_at + (wanted.ends_at - wanted.starts_at))


def _whole_minute(moment: datetime) -> datetime:
    """It, or the next one."""
    begun = moment.replace(second=0, microsecond=0)
    return begun if begun == moment else begun + MINUTE
