"""Who holds which GPUs, as a drawing: what is on a node becomes GPUs side by side, cut into the pool's units. Pure.

Which unit lies on which card is the node's own choice and nobody reports it, so units are drawn in one order: the
reader's own first, what is free last. How many there are of each kind is true; their places are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, pairwise
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from quotas.health import Trouble


class Kind(StrEnum):
    """Whose a unit is, as far as the reader may know; in the order of the drawing."""

    MINE = "mine"
    TENANT = "tenant"
    OTHER = "other"
    FOREIGN = "foreign"
    RESERVED = "reserved"
    FREE = "free"
    OUT = "out"


# Up to this many to a GPU, each unit is drawn by itself: they can be counted.
MOST_COUNTED = 8
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


@dataclass(frozen=True)
class Segment:
    """A piece of one drawn GPU, in percent of its width."""

    kind: Kind
    start: float
    width: float
    words: str


@dataclass(frozen=True)
class NodeRow:
    label: str
    trouble: Trouble
    parts: tuple[tuple[Held, str], ...]
    gpus: tuple[tuple[Segment, ...], ...]

    @property
    def words(self) -> str:
        """The whole row in words."""
        units: dict[Kind, int] = {}
        for held, _words in self.parts:
            units[held.kind] = units.get(held.kind, 0) + held.units
        return " · ".join(counted(kind, amount) for kind, amount in units.items())


def node_row(
    label: str, trouble: Trouble, *, offered: int, broken: int, held: Iterable[Held], units_per_gpu: int
) -> NodeRow:
    """`offered` units the node has, and `broken` ones it should have besides. None is free where nothing new may go."""
    taken = sorted(held, key=lambda one: (ORDER[one.kind], one.who, one.what))
    free = max(offered - sum(one.units for one in taken), 0)
    rest = [Held(Kind.OUT if trouble else Kind.FREE, free), Held(Kind.OUT, broken)]
    parts = _joined([*taken, *rest])
    told = tuple((part, words_of(part, units_per_gpu)) for part in parts)
    return NodeRow(label, trouble, told, tuple(_gpus(told, units_per_gpu)))


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
            yield Segment(part.kind, (unit - first) * one, min(step, right - unit) * one, words)


def amount(units: int, units_per_gpu: int) -> str:
    """Whole GPUs are counted as such, pieces of shared ones as slices."""
    if units_per_gpu == 1:
        return ngettext("%(count)s GPU", "%(count)s GPUs", units) % {"count": units}
    return ngettext("%(count)s slice", "%(count)s slices", units) % {"count": units}


def words_of(part: Held, units_per_gpu: int) -> str:
    """What a part is, and whose."""
    said = {"amount": amount(part.units, units_per_gpu), "who": part.who, "what": part.what}
    match part.kind:
        case Kind.FREE:
            return _("%(amount)s: free") % said
        case Kind.OUT:
            return _("%(amount)s: out of use") % said
        case Kind.MINE if part.what:
            return _("%(amount)s: yours, %(what)s") % said
        case Kind.MINE:
            return _("%(amount)s: yours") % said
        case _ if part.what:
            return _("%(amount)s: %(who)s, %(what)s") % said
        case _:
            return _("%(amount)s: %(who)s") % said


def counted(kind: Kind, units: int) -> str:
    said = {"count": units}
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
        case Kind.FREE:
            return _("%(count)s free") % said
        case Kind.OUT:
            return _("%(count)s out of use") % said
