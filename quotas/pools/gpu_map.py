"""Who holds which GPUs, as a drawing: what is on a node becomes GPUs side by side, cut into the pool's units. Pure.

Which unit lies on which card is the node's own choice and mostly nobody reports it, so units are drawn in one order:
the reader's own first, what is free last. How many there are of each kind is true; their places are not. HAMi does
report it: there each card is drawn with what is on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, pairwise
from math import ceil
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from quotas.pools.health import Trouble
from quotas.scheduling import as_gpus


class Kind(StrEnum):
    """Whose a unit is, as far as the reader may know; in the order of the drawing."""

    MINE = "mine"
    TENANT = "tenant"
    OTHER = "other"
    FOREIGN = "foreign"
    RESERVED = "reserved"
    BOOKED = "booked"
    FREE = "free"
    OUT = "out"


# Up to this many to a GPU, each unit is drawn by itself: they can be counted.
MOST_COUNTED = 8
# Where a GPU is shared by percent of it, nobody counts the pieces.
IN_PERCENT = 100
ORDER = {kind: place for place, kind in enumerate(Kind)}


@dataclass(frozen=True)
class Held:
    """Units of a node that somebody has, or that nobody can have: `who` and `what` only as the reader may know."""

    kind: Kind
    units: int
    who: str = ""
    what: str = ""
    holder: UUID | None = None
    since: datetime | None = None
    # Until when it is asked to give them back.
    asked_back: datetime | None = None
    # Of how many cards; and of which so many units each, where that is reported.
    cards: int = 1
    on: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Segment:
    """A piece of one drawn GPU, in percent of its width."""

    kind: Kind
    start: float
    width: float
    words: str
    is_asked_back: bool = False


@dataclass(frozen=True)
class NodeRow:
    label: str
    trouble: Trouble
    parts: tuple[tuple[Held, str], ...]
    gpus: tuple[tuple[Segment, ...], ...]
    units_per_gpu: int = 1

    @property
    def words(self) -> str:
        """The whole row in words."""
        units: dict[Kind, int] = {}
        for held, _words in self.parts:
            units[held.kind] = units.get(held.kind, 0) + held.units
        told = [counted(kind, figure(amount, self.units_per_gpu)) for kind, amount in units.items()]
        if back := sum(held.units for held, _words in self.parts if held.asked_back):
            told.append(_("%(count)s being asked back") % {"count": figure(back, self.units_per_gpu)})
        return " · ".join(told)


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
) -> NodeRow:
    """`offered` units the node has, and `broken` ones it should have besides. None is free where nothing new may go.

    `kept` of what is free is booked; `cards`: those that the node reports, and whether they work.
    """
    taken = sorted(held, key=lambda one: (ORDER[one.kind], one.who, one.what))
    if cards:
        taken = _dealt(taken, cards)
        free = sum(max(0, left) for left in _left_of(taken, cards).values())
    else:
        free = max(offered - sum(one.units for one in taken), 0)
    booked = 0 if trouble else min(kept, free)
    rest = [
        Held(Kind.BOOKED, booked),
        Held(Kind.OUT if trouble else Kind.FREE, free - booked),
        Held(Kind.OUT, broken),
    ]
    parts = _joined([*taken, *rest])
    told = tuple((part, words_of(part, units_per_gpu)) for part in parts)
    gpus = _by_card(told, cards, trouble) if cards else _gpus(told, units_per_gpu)
    return NodeRow(label, trouble, told, tuple(gpus), units_per_gpu)


def _left_of(taken: Iterable[Held], cards: Mapping[str, bool]) -> dict[str, int]:
    left = {name: IN_PERCENT for name, works in cards.items() if works}
    for held in taken:
        for name, units in held.on:
            if name in left:
                left[name] -= units
    return left


def _dealt(taken: Iterable[Held], cards: Mapping[str, bool]) -> list[Held]:
    """All with their cards. Before a pod has said which it got, it is drawn on the fullest that hold it."""
    taken = [held for held in taken if held.units]
    left = _left_of(taken, cards)
    dealt = []
    for held in taken:
        if not held.on:
            each = held.units // held.cards
            fitting_first = sorted(left, key=lambda name: (left[name] < each, left[name]))
            chosen = fitting_first[: held.cards]
            dealt.append(replace(held, on=tuple((name, each) for name in chosen)))
            for name in chosen:
                left[name] -= each
        else:
            dealt.append(held)
    return dealt


def _by_card(
    parts: Sequence[tuple[Held, str]], cards: Mapping[str, bool], trouble: Trouble
) -> Iterable[tuple[Segment, ...]]:
    rest = {part.kind: (part.units, words) for part, words in parts if not part.on}
    booked, _words = rest.get(Kind.BOOKED, (0, ""))
    for card, works in cards.items():
        pieces = [(part, units, words) for part, words in parts for name, units in part.on if name == card]
        left = max(0, IN_PERCENT - sum(units for _part, units, _words in pieces))
        keeps = min(booked, left) if works and not trouble else 0
        booked -= keeps
        kind = Kind.FREE if works and not trouble else Kind.OUT
        for kind_left, units in ((Kind.BOOKED, keeps), (kind, left - keeps)):
            pieces.append((Held(kind_left, units), units, rest.get(kind_left, (0, ""))[1]))
        yield tuple(_side_by_side(pieces))


def _side_by_side(pieces: Iterable[tuple[Held, int, str]]) -> Iterable[Segment]:
    """Of one card. No more than all of it is drawn."""
    at = 0
    for part, units, words in pieces:
        width = min(units, IN_PERCENT - at)
        if width > 0:
            yield Segment(part.kind, at, width, words, part.asked_back is not None)
            at += width


def _joined(parts: Sequence[Held]) -> list[Held]:
    """Without what is empty; units that nobody has are one part."""
    out = sum(part.units for part in parts if part.kind == Kind.OUT)
    others = [part for part in parts if part.units and part.kind != Kind.OUT]
    return [*others, Held(Kind.OUT, out)] if out else others


def _gpus(parts: Sequence[tuple[Held, str]], units_per_gpu: int) -> Iterable[tuple[Segment, ...]]:
    total = sum(part.units for part, _words in parts)
    for first in range(0, total, units_per_gpu):
        yield tuple(_segments(parts, first, min(first + units_per_gpu, total), units_per_gpu))


def _segments(
    parts: Sequence[tuple[Held, str]], first: int, end: int, units_per_gpu: int
) -> Iterable[Segment]:
    """What of the parts lies between two units, in percent of one GPU."""
    one = 100 / units_per_gpu
    step = 1 if units_per_gpu <= MOST_COUNTED else units_per_gpu
    ends = [0, *accumulate(part.units for part, _words in parts)]
    for (part, words), (start, stop) in zip(parts, pairwise(ends), strict=True):
        left, right = max(start, first), min(stop, end)
        for unit in range(left, right, step):
            width = min(step, right - unit) * one
            yield Segment(part.kind, (unit - first) * one, width, words, part.asked_back is not None)


def figure(units: int, units_per_gpu: int) -> int | float:
    """What people count: slices where a GPU is cut into some, else GPUs."""
    return as_gpus(units, units_per_gpu) if units_per_gpu == IN_PERCENT else units


def amount(units: int, units_per_gpu: int) -> str:
    """Whole GPUs are counted as such, pieces of shared ones as slices, or in percent."""
    if units_per_gpu == IN_PERCENT and units < IN_PERCENT:
        return _("%(percent)s%% of a GPU") % {"percent": units}
    if units_per_gpu in (1, IN_PERCENT):
        gpus = as_gpus(units, units_per_gpu)
        return ngettext("%(count)s GPU", "%(count)s GPUs", ceil(gpus)) % {"count": gpus}
    return ngettext("%(count)s slice", "%(count)s slices", units) % {"count": units}


def words_of(part: Held, units_per_gpu: int) -> str:
    """What a part is, and whose; until when, where it is asked back."""
    said = _whose(part, {"amount": amount(part.units, units_per_gpu), "who": part.who, "what": part.what})
    if part.asked_back is None:
        return said
    at = date_format(timezone.localtime(part.asked_back), "H:i")
    return _("%(whose)s; asked back, until %(time)s") % {"whose": said, "time": at}


def _whose(part: Held, said: dict[str, str]) -> str:
    match part.kind:
        case Kind.FREE:
            return _("%(amount)s: free") % said
        case Kind.OUT:
            return _("%(amount)s: out of use") % said
        case Kind.BOOKED:
            return _("%(amount)s: kept free for a booking") % said
        case Kind.MINE if part.what:
            return _("%(amount)s: yours, %(what)s") % said
        case Kind.MINE:
            return _("%(amount)s: yours") % said
        case _ if part.what:
            return _("%(amount)s: %(who)s, %(what)s") % said
        case _:
            return _("%(amount)s: %(who)s") % said


def counted(kind: Kind, count: float) -> str:
    said = {"count": count}
    match kind:
        case Kind.MINE:
            return _("%(count)s yours") % said
        case Kind.TENANT:
            return _("%(count)s your tenant’s") % said
        case Kind.OTHER:
            return _("%(count)s taken by others") % said
        case Kind.FOREIGN:
            return _("%(count)s outside Berth") % said
        case Kind.RESERVED:
            return _("%(count)s held back") % said
        case Kind.BOOKED:
            return _("%(count)s booked") % said
        case Kind.FREE:
            return _("%(count)s free") % said
        case Kind.OUT:
            return _("%(count)s out of use") % said
