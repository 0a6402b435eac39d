"""Admin actions on nodes: close, open, drain with notice, forget a silent agent. The page of nodes offers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from clusters.models import Node
from monitoring.health import drain
from monitoring.health.rules import DRAINS, is_silent
from monitoring.nodes import Glance, glances

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Place:
    """A node, with what decides which actions are possible on it."""

    node: Node
    runs: int
    is_draining: bool
    has_silent_agent: bool


def place_of(node: Node, glance: Glance) -> Place:
    is_draining = any(trouble.code == DRAINS for trouble in glance.troubles)
    has_silent_agent = glance.agent is not None and is_silent(glance.agent, timezone.now())
    return Place(node, glance.runs, is_draining, has_silent_agent)


class NodeAction(Previewed[Node]):
    """Admin action on nodes. The preview shows each node with its number of runs."""

    def effects(self, actor: Actor, rows: Sequence[Node]) -> list[Effect]:
        told = glances(rows)
        return [self._effect(place_of(node, told[node.cluster_id, node.name])) for node in rows]

    def _effect(self, place: Place) -> Effect:
        pk, whom = str(place.node.pk), f"{place.node.name} · {place.node.cluster.name}"
        if why := self.why_not(place):
            return Effect(pk, whom, refused=why)
        return Effect(pk, whom, (self.what(place.runs),))

    def is_offered(self, place: Place) -> bool:
        """Return True if the node's own page offers the action."""
        return not place.node.unschedulable

    def why_not(self, place: Place) -> str:
        raise NotImplementedError

    def what(self, runs: int) -> str:
        raise NotImplementedError

    def done(self, count: int) -> str:
        return ngettext("Done for %(count)d node.", "Done for %(count)d nodes.", count) % {"count": count}


class Cordon(NodeAction):
    name = "cordon"
    short_description = gettext_lazy("Close for new work …")
    title = gettext_lazy("Close nodes for new work")
    button = pgettext_lazy("a node", "Close")

    def why_not(self, place: Place) -> str:
        return _("It is closed already.") if place.node.unschedulable else ""

    def what(self, runs: int) -> str:
        return ngettext(
            "Nothing new starts there. %(count)d run there is not affected.",
            "Nothing new starts there. %(count)d runs there are not affected.",
            runs,
        ) % {"count": runs}

    def apply(self, actor: Actor, row: Node) -> bool:
        return drain.cordon(actor, row)


class Uncordon(NodeAction):
    name = "uncordon"
    short_description = gettext_lazy("Open again …")
    title = gettext_lazy("Open nodes again")
    button = pgettext_lazy("a node", "Open")

    def is_offered(self, place: Place) -> bool:
        return place.node.unschedulable

    def why_not(self, place: Place) -> str:
        return "" if place.node.unschedulable or place.is_draining else _("It is open.")

    def what(self, runs: int) -> str:
        return _("New work can start there. A drain in progress is cancelled.")

    def apply(self, actor: Actor, row: Node) -> bool:
        return drain.uncordon(actor, row)


class Drain(NodeAction):
    title = gettext_lazy("Drain nodes with notice")
    button = gettext_lazy("Drain")
    is_grave = True

    def __init__(self, minutes: int, short_description: StrOrPromise) -> None:
        self.name, self.short_description, self.minutes = f"drain_{minutes}", short_description, minutes
        super().__init__()

    def why_not(self, place: Place) -> str:
        return _("It is being drained already.") if place.is_draining else ""

    def what(self, runs: int) -> str:
        return ngettext(
            "Nothing new starts there. The owner of %(count)d run is notified now, and it stops in %(minutes)d min. "
            "Files are kept; a part of a job starts again elsewhere.",
            "Nothing new starts there. The owners of %(count)d runs are notified now, and they stop in "
            "%(minutes)d min. Files are kept; parts of jobs start again elsewhere.",
            runs,
        ) % {"count": runs, "minutes": self.minutes}

    def apply(self, actor: Actor, row: Node) -> bool:
        return drain.drain(actor, row, self.minutes)


class ForgetAgent(NodeAction):
    name = "forget_agent"
    short_description = gettext_lazy("Remove its silent agent …")
    title = gettext_lazy("Remove silent agents")
    button = gettext_lazy("Remove them")

    def is_offered(self, place: Place) -> bool:
        return place.has_silent_agent

    def why_not(self, place: Place) -> str:
        return "" if place.has_silent_agent else _("No silent agent is known there.")

    def what(self, runs: int) -> str:
        return _(
            "Its last report of the node and its GPUs no longer counts. If it reports again, it is used again."
        )

    def apply(self, actor: Actor, row: Node) -> bool:
        return drain.forget_agent(actor, row)


NODE_ACTIONS = (
    Cordon(),
    Uncordon(),
    Drain(10, gettext_lazy("Drain in 10 minutes …")),
    Drain(60, gettext_lazy("Drain in an hour …")),
    Drain(24 * 60, gettext_lazy("Drain in a day …")),
    ForgetAgent(),
)
