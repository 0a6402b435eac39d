"""Free times of a pool: is a booking free at its time, and if not, from when. Pure: no database, no clock.

A booking is not tied to nodes, but each of its places must fit on one. So all places are laid out as a pass does it,
on the nodes as they are without our runs, beside the runs that will still be there: the earliest first, each where
least is free. A run without a known end is always there. Runs that can be preempted are not in the way: of a tenant
that then borrows, the youngest runs, the last of which may be partly its own.

Where GPUs are cut by memory and cores, the GPU of a run is not known: there a run takes whole ones, and places that
are parts of a GPU share those of their own booking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, pairwise
from math import ceil
from uuid import UUID

from quotas.scheduling import Booked, NodeState, PoolState, Run
from quotas.scheduling.timeline import FOREVER

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Span:
    """Units taken from one time to another."""

    starts_at: datetime
    ends_at: datetime
    units: int


@dataclass
class Lane:
    """Amount that can be taken at once: of a node's units, or of a tenant's quota."""

    units: int
    taken: list[Span] = field(default_factory=list)

    def free(self, starts_at: datetime, ends_at: datetime) -> int:
        """Return what is free all of that time."""
        steps = {span.starts_at for span in self.taken if starts_at < span.starts_at < ends_at}
        return min(map(self.free_at, {starts_at, *steps}))

    def free_at(self, moment: datetime) -> int:
        return self.units - sum(span.units for span in self.taken if span.starts_at <= moment < span.ends_at)


class FreeSlots:
    """Bookable times of a pool as it is now."""

    def __init__(self, state: PoolState) -> None:
        self.state = state
        self.runs = [run for node in state.nodes for run in node.runs]
        self.cuts_cards = any(node.without_ours.cards for node in state.nodes)
        self.in_the_way = _in_the_way(state, self.runs)

    def is_free(self, wanted: Booked) -> bool:
        """Return True if the nodes have room beside the other bookings, and the quota beside the tenant's own ones.

        An earlier version of the same booking does not count.
        """
        return self._within_quota(wanted) and self._has_room(wanted)

    def next_free(self, wanted: Booked, latest: datetime) -> datetime | None:
        """Return the earliest start, from the wanted one on, at which as much is free for as long; to the minute.

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
        """Return how many places of that size are free at the wanted time, if not all of them."""
        fewer = range(wanted.places - 1, 0, -1)
        return next((places for places in fewer if self.is_free(replace(wanted, places=places))), 0)

    def preempted_by(self, wanted: Booked) -> tuple[UUID, ...]:
        """Return runs on borrowed units that may have to end for it: none if there is room beside them all."""
        borrowed = tuple(
            run.claim
            for run in _each_claim_once(self.runs)
            if run.booking is None
            and _end(run) > wanted.starts_at
            and not any(
                span.starts_at <= wanted.starts_at < span.ends_at for span in self.in_the_way[run.claim]
            )
        )
        return () if not borrowed or self._has_room(wanted, borrowed_stay=True) else borrowed

    def held_meanwhile(self, wanted: Booked) -> int:
        """Return the units of the tenant's own runs that may still be there: these count against its quota, too."""
        return sum(
            run.takes.units
            for run in self.runs
            if run.tenant == wanted.tenant
            and run.in_pool
            and run.booking is None
            and _end(run) > wanted.starts_at
        )

    def _within_quota(self, wanted: Booked) -> bool:
        """Return True if its own share is enough: borrowed units may be preempted, booked ones never are."""
        own = self.state.tenants[wanted.tenant].nominal_units
        beside = [_span(booked) for booked in self._others(wanted) if booked.tenant == wanted.tenant]
        return own is None or Lane(own, beside).free(wanted.starts_at, wanted.ends_at) >= units_of(wanted)

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
        """Return the nodes with the runs in the way. A run in a booking's place keeps the place where it is."""
        ends: dict[UUID | None, datetime] = {booked.booking: booked.ends_at for booked in bookings}
        lanes = []
        for node in self.state.nodes:
            lane = Lane(self._whole(node))
            for run in node.runs:
                lane.taken.extend(
                    replace(span, units=self._takes(run)) for span in self._there(run, ends, borrowed_stay)
                )
            lanes.append(lane)
        return lanes

    def _there(self, run: Run, ends: Mapping[UUID | None, datetime], borrowed_stay: bool) -> list[Span]:
        until = max(_end(run), ends.get(run.booking, self.state.now))
        if borrowed_stay or run.booking in ends:
            return [Span(self.state.now, until, run.takes.units)]
        return self.in_the_way[run.claim]

    def _whole(self, node: NodeState) -> int:
        if not self.cuts_cards:
            return node.without_ours.units
        return self.state.units_per_gpu * sum(card.cores_percent >= 100 for card in node.without_ours.cards)

    def _takes(self, run: Run) -> int:
        return self.state.units_per_gpu * len(run.takes.cards) if self.cuts_cards else run.takes.units

    def _pieces(self, booked: Booked, places: int) -> tuple[int, int]:
        """Return how many pieces of how many units so many places take, each piece on one node."""
        per_gpu = self.state.units_per_gpu
        if not self.cuts_cards:
            return places, booked.units_each
        if booked.units_each > per_gpu:
            return places, per_gpu * ceil(booked.units_each / per_gpu)
        return ceil(places / (per_gpu // booked.units_each)), per_gpu

    def _others(self, wanted: Booked) -> Iterator[Booked]:
        return (booked for booked in self.state.bookings if booked.booking != wanted.booking)


def _take(lanes: list[Lane], booked: Booked, units: int) -> bool:
    """Take units on the node with least free at the start. Return False if none has room all that time."""
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


def _in_the_way(state: PoolState, runs: Iterable[Run]) -> dict[UUID, list[Span]]:
    """Return when each run is there and cannot be preempted; of a claim of several members, when each of them is."""
    found: dict[UUID, list[Span]] = defaultdict(list)
    of_tenants: defaultdict[UUID, list[Run]] = defaultdict(list)
    for run in _each_claim_once(runs):
        if run.in_pool:
            of_tenants[run.tenant].append(run)
        else:
            found[run.claim].append(Span(state.now, _end(run), run.takes.units))
    for tenant, own in of_tenants.items():
        quota = state.tenants.get(tenant)
        nominal = quota.nominal_units if quota else None
        if nominal is None or sum(run.all_units for run in own) <= nominal:
            found |= {run.claim: [Span(state.now, _end(run), run.takes.units)] for run in own}
            continue
        times = [state.now, *sorted({_end(run) for run in own if state.now < _end(run) < FOREVER}), FOREVER]
        for starts_at, ends_at in pairwise(times):
            there = [run for run in own if _end(run) > starts_at]
            for run in _kept(there, nominal):
                _prolong(found[run.claim], Span(starts_at, ends_at, run.takes.units))
    return found


def _kept(runs: Iterable[Run], nominal_units: int) -> Iterator[Run]:
    """Yield the runs that stay if a tenant gives back what it borrows: the youngest go, the last as a whole."""
    over = sum(run.all_units for run in runs) - nominal_units
    for run in sorted(runs, key=lambda run: (run.admitted_at, run.claim), reverse=True):
        if run.booking is None and over > 0:
            over -= run.all_units
        else:
            yield run


def _each_claim_once(runs: Iterable[Run]) -> Iterable[Run]:
    """Return one run of each claim: the members of one are equal, and end together."""
    return {run.claim: run for run in runs}.values()


def _prolong(spans: list[Span], span: Span) -> None:
    if spans and spans[-1].ends_at == span.starts_at:
        span = replace(spans.pop(), ends_at=span.ends_at)
    spans.append(span)


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
    """Round up to a whole minute."""
    begun = moment.replace(second=0, microsecond=0)
    return begun if begun == moment else begun + MINUTE
