"""Drawing of who holds which GPUs: each node's GPUs side by side, cut into the pool's units. Pure.

The node chooses which unit lies on which card, and mostly nobody reports it. So units are drawn in one order: the
reader's own first, free ones last. The number of units of each kind is true; their places are not. HAMi and agents on
the nodes do report the cards: there each card is drawn with what is on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, pairwise, zip_longest
from math import ceil

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from quotas.pools.gpu_reports import GpuReport
from quotas.pools.health import Trouble
from quotas.scheduling import as_gpus


class Kind(StrEnum):
    """Owner of a unit, as far as the reader may know; in the order of the drawing."""

    MINE = "mine"
    TENANT = "tenant"
    OTHER = "other"
    FOREIGN = "foreign"
    RESERVED = "reserved"
    BOOKED = "booked"
    FREE = "free"
    OUT = "out"


# Up to this many units per GPU, each is drawn by itself: people can count them.
MOST_COUNTED = 8
# Units per GPU that is shared by percent: nobody counts these.
IN_PERCENT = 100
ORDER = {kind: place for place, kind in enumerate(Kind)}
COUNTED = {
    Kind.MINE: gettext_lazy("%(count)s yours"),
    Kind.TENANT: gettext_lazy("%(count)s your tenant’s"),
    Kind.OTHER: gettext_lazy("%(count)s taken by others"),
    Kind.FOREIGN: gettext_lazy("%(count)s outside Berth"),
    Kind.RESERVED: gettext_lazy("%(count)s held back"),
    Kind.BOOKED: gettext_lazy("%(count)s booked"),
    Kind.FREE: gettext_lazy("%(count)s free"),
    Kind.OUT: gettext_lazy("%(count)s out of use"),
}


@dataclass(frozen=True)
class Held:
    """Units of a node that are held, free or out of use: `who` and `what` only as the reader may know."""

    kind: Kind
    units: int
    who: str = ""
    what: str = ""
    page: str = ""  # of its workspace or job
    since: datetime | None = None
    # Time by which a preempted run must give them back.
    reclaimed_at: datetime | None = None
    # Number of cards; and the units of each card, where that is reported.
    cards: int = 1
    on: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Segment:
    """A piece of one drawn GPU, in percent of its width."""

    kind: Kind
    start: float
    width: float
    words: str
    is_reclaimed: bool = False


@dataclass(frozen=True)
class NodeRow:
    label: str
    trouble: Trouble
    parts: tuple[tuple[Held, str], ...]
    gpus: tuple[tuple[Segment, ...], ...]
    units_per_gpu: int = 1
    # Report of each GPU, by card where the cards are known.
    reports: tuple[GpuReport, ...] = ()
    # Why nothing new may start there, if the trouble has words of its own.
    why: str = ""
    is_by_card: bool = False

    @property
    def cells(self) -> list[tuple[tuple[Segment, ...], GpuReport | None]]:
        """Drawn GPUs, each with its report if it is known which GPU that is."""
        reports = self.reports[: len(self.gpus)] if self.is_by_card else ()
        return list(zip_longest(self.gpus, reports))

    @property
    def words(self) -> str:
        """Row in words."""
        units: Counter[Kind] = Counter()
        for held, _words in self.parts:
            units[held.kind] += held.units
        said = [counted(kind, figure(amount, self.units_per_gpu)) for kind, amount in units.items()]
        if back := sum(held.units for held, _words in self.parts if held.reclaimed_at):
            said.append(_("%(count)s being reclaimed") % {"count": figure(back, self.units_per_gpu)})
        return " · ".join(said)


def node_row(
    label: str,
    trouble: Trouble,
    *,
    offered: int,
    broken: int,
    held: Iterable[Held],
    units_per_gpu: int,
    kept: int = 0,
    cards: Mapping[str, bool] | None = None,
    reports: Mapping[str, GpuReport] | None = None,
    why: str = "",
) -> NodeRow:
    """Return the row of a node with `offered` units, and `broken` ones besides. With trouble, none is free.

    `kept` of the free units are booked; `cards`: those that the node reports, and whether they work.
    """
    taken = sorted(held, key=lambda one: (ORDER[one.kind], one.who, one.what))
    if cards:
        taken, left = _dealt(taken, cards, units_per_gpu)
        free = sum(max(0, units) for name, units in left.items() if cards[name])
        broken = sum(max(0, units) for name, units in left.items() if not cards[name])
        # Kubernetes only counts: a run on a broken GPU keeps one that works from others.
        if units_per_gpu != IN_PERCENT:
            given = min(free, max(offered - sum(one.units for one in taken), 0))
            free, broken = given, broken + free - given
    else:
        free = max(offered - sum(one.units for one in taken), 0)
    booked = 0 if trouble else min(kept, free)
    rest = [
        Held(Kind.BOOKED, booked),
        Held(Kind.OUT if trouble else Kind.FREE, free - booked),
        Held(Kind.OUT, broken),
    ]
    parts = _joined([*taken, *rest])
    worded = tuple((part, words_of(part, units_per_gpu)) for part in parts)
    gpus = _by_card(worded, cards, trouble, units_per_gpu) if cards else _gpus(worded, units_per_gpu)
    reports = reports or {}
    known = [reports[name] for name in cards if name in reports] if cards else list(reports.values())
    is_by_card = bool(cards) and len(known) == len(cards or ())
    return NodeRow(label, trouble, worded, tuple(gpus), units_per_gpu, tuple(known), why, is_by_card)


def _dealt(
    taken: Iterable[Held], cards: Mapping[str, bool], units_per_gpu: int
) -> tuple[list[Held], dict[str, int]]:
    """Return all parts with their cards, and what is left of each. Unreported ones are drawn on the fullest."""
    taken = [held for held in taken if held.units]
    left = dict.fromkeys(cards, units_per_gpu)
    for held in taken:
        for name, units in held.on:
            left[name] -= units
    dealt = []
    for held in taken:
        on = held.on or _chosen(held, {name: left[name] for name in cards if cards[name]}, units_per_gpu)
        if not held.on:
            for name, units in on:
                left[name] -= units
        dealt.append(replace(held, on=on))
    return dealt, left


def _chosen(held: Held, left: Mapping[str, int], units_per_gpu: int) -> tuple[tuple[str, int], ...]:
    """Choose cards: the same of each where GPUs are cut by percent; else unit by unit, as there is room."""
    if units_per_gpu == IN_PERCENT:
        each = held.units // held.cards
        fitting_first = sorted(left, key=lambda name: (left[name] < each, left[name]))
        return tuple((name, each) for name in fitting_first[: held.cards])
    on, rest = [], held.units
    for name in sorted(left, key=lambda name: left[name]):
        if (units := min(rest, left[name])) > 0:
            on.append((name, units))
            rest -= units
    return tuple(on)


def _by_card(
    parts: Sequence[tuple[Held, str]], cards: Mapping[str, bool], trouble: Trouble, units_per_gpu: int
) -> Iterable[tuple[Segment, ...]]:
    rest = {part.kind: (part.units, words) for part, words in parts if not part.on}
    booked, _words = rest.get(Kind.BOOKED, (0, ""))
    free, _words = rest.get(Kind.FREE, (0, ""))
    for card, works in cards.items():
        pieces = [(part, units, words) for part, words in parts for name, units in part.on if name == card]
        left = max(0, units_per_gpu - sum(units for _part, units, _words in pieces))
        keeps = min(booked, left) if works and not trouble else 0
        gives = min(free, left - keeps) if works and not trouble else 0
        booked, free = booked - keeps, free - gives
        for kind_left, units in (
            (Kind.BOOKED, keeps),
            (Kind.FREE, gives),
            (Kind.OUT, left - keeps - gives),
        ):
            pieces.append((Held(kind_left, units), units, rest.get(kind_left, (0, ""))[1]))
        yield tuple(_side_by_side(pieces, units_per_gpu))


def _side_by_side(pieces: Iterable[tuple[Held, int, str]], units_per_gpu: int) -> Iterable[Segment]:
    """Yield the segments of one card, and no more than the whole card."""
    one = 100 / units_per_gpu
    at = 0
    for part, units, words in pieces:
        end = min(at + units, units_per_gpu)
        step = 1 if units_per_gpu <= MOST_COUNTED else max(1, end - at)
        for unit in range(at, end, step):
            yield Segment(part.kind, unit * one, step * one, words, part.reclaimed_at is not None)
        at = end


def _joined(parts: Sequence[Held]) -> list[Held]:
    """Leave out empty parts, and join units that nobody can have into one part."""
    out = sum(part.units for part in parts if part.kind == Kind.OUT)
    others = [part for part in parts if part.units and part.kind != Kind.OUT]
    return [*others, Held(Kind.OUT, out)] if out else others


def _gpus(parts: Sequence[tuple[Held, str]], units_per_gpu: int) -> Iterable[tuple[Segment, ...]]:
    """Draw the parts one after the other, each beginning where the last one ends."""
    ends = [0, *accumulate(part.units for part, _words in parts)]
    for first in range(0, ends[-1], units_per_gpu):
        between = (
            (part, min(stop, first + units_per_gpu) - max(start, first), words)
            for (part, words), (start, stop) in zip(parts, pairwise(ends), strict=True)
        )
        pieces = [(part, units, words) for part, units, words in between if units > 0]
        yield tuple(_side_by_side(pieces, units_per_gpu))


def figure(units: int, units_per_gpu: int) -> int | float:
    """Return the number that people count: slices where a GPU is cut into some, else GPUs."""
    return as_gpus(units, units_per_gpu) if units_per_gpu == IN_PERCENT else units


def amount(units: int, units_per_gpu: int) -> str:
    """Return the amount in words: whole GPUs, slices of shared ones, or percent."""
    if units_per_gpu == IN_PERCENT and units < IN_PERCENT:
        return _("%(percent)s%% of a GPU") % {"percent": units}
    if units_per_gpu in (1, IN_PERCENT):
        gpus = as_gpus(units, units_per_gpu)
        return ngettext("%(count)s GPU", "%(count)s GPUs", ceil(gpus)) % {"count": gpus}
    return ngettext("%(count)s slice", "%(count)s slices", units) % {"count": units}


def words_of(part: Held, units_per_gpu: int) -> str:
    """Return a part in words: amount, holder, and the time by which a preempted one ends."""
    said = _whose(part, {"amount": amount(part.units, units_per_gpu), "who": part.who, "what": part.what})
    if part.reclaimed_at is None:
        return said
    at = date_format(timezone.localtime(part.reclaimed_at), "H:i")
    return _("%(whose)s; reclaimed at %(time)s") % {"whose": said, "time": at}


def _whose(part: Held, said: dict[str, str]) -> str:
    match part.kind:
        case Kind.FREE:
            return _("%(amount)s: free") % said
        case Kind.OUT:
            return _("%(amount)s: out of use") % said
        case Kind.BOOKED:
            return _("%(amount)s: reserved for a booking") % said
        case Kind.MINE if part.what:
            return _("%(amount)s: yours, %(what)s") % said
        case Kind.MINE:
            return _("%(amount)s: yours") % said
        case _ if part.what:
            return _("%(amount)s: %(who)s, %(what)s") % said
        case _:
            return _("%(amount)s: %(who)s") % said


def counted(kind: Kind, count: float) -> str:
    return str(COUNTED[kind] % {"count": count})
