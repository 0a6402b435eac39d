"""Queries for the map of GPUs that one person sees: pools, who holds what on their nodes, and the queue.

People are named only to members of their tenant and to admins; to others they are “another tenant”. Nodes have their
names for admins only; others see numbers. The number of queries does not grow with the data.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from accounts.access import Actor, visible_tenants
from accounts.models import Membership
from clusters import explain
from clusters.models import Node, PodUsage
from clusters.nodes.gpus import NodeKey
from quotas import reasons, sharing
from quotas.bookings import changes as bookings
from quotas.holders import names_of, page_of
from quotas.models import Claim, Pool
from quotas.pool_state import kept_for_bookings
from quotas.pools import cards
from quotas.pools.gpu_map import Held, Kind, NodeRow, figure, node_row
from quotas.pools.gpu_reports import Pod, ReportTexts, Shares, cards_of, read_gpus, shares_held
from quotas.pools.health import Trouble, trouble_of, withdrawn_units
from quotas.pools.members import members_at
from quotas.pools.nodes import PODS_ON, PoolNodes, offered_units
from quotas.queries import place_in_queue
from quotas.when import forecast_in_words

QUEUE_SHOWN = 20
SOON = timedelta(days=1)
DIGITS = re.compile(r"(\d+)")

# Person and tenant of a claim.
NAMED = {"person": F("user__username"), "tenant_name": F("tenant__name")}
NO_POD: Pod = ("", "")

Place = tuple[UUID, str, str]  # cluster, node, resource


@dataclass(frozen=True)
class InQueue:
    """A waiting claim. `who` is empty for another tenant's."""

    position: int
    asked: float
    since: datetime
    why: str
    is_mine: bool
    who: str = ""
    what: str = ""
    page: str = ""  # of its workspace or job
    when: str = ""
    # It asks for so many nodes, each with the amount above.
    nodes: int = 1


@dataclass
class Viewer:
    """Person who sees the map, and what they may know."""

    actor: Actor

    @cached_property
    def visible(self) -> set[UUID]:
        return set(visible_tenants(self.actor).values_list("pk", flat=True))

    @cached_property
    def joined(self) -> set[UUID]:
        return set(Membership.objects.filter(user=self.actor.user).values_list("tenant_id", flat=True))

    def kind(self, claim: Any) -> Kind:
        if claim.end_unproven_since:
            return Kind.RESERVED
        if claim.user_id == self.actor.user.pk and claim.tenant_id in self.visible:
            return Kind.MINE
        return Kind.TENANT if claim.tenant_id in self.joined else Kind.OTHER

    def knows(self, claim: Any) -> bool:
        return claim.tenant_id in self.visible

    def who(self, claim: Any) -> str:
        """Return the claim's person and tenant, from the columns of `NAMED`, or “another tenant”."""
        if not self.knows(claim):
            return _("another tenant")
        return _("%(person)s of %(tenant)s") % {"person": claim.person, "tenant": claim.tenant_name}


@dataclass(frozen=True)
class HeldHere:
    """A member of an admitted claim on a node, and its pod and the cards of that, if it is there already."""

    claim: Any
    pod: Pod = NO_POD
    devices: Sequence[cards.Device] = ()


@dataclass(frozen=True)
class OtherPod:
    """A pod without an admitted claim. Our own such pods are just ending."""

    units: int
    is_ours: bool
    on: Shares
    pod: Pod


@dataclass
class Nodes:
    """Nodes of some pools, with all that is on the nodes shown, read at once."""

    seen: Mapping[UUID, PoolNodes]
    resources: set[str]
    # Units of each node kept for bookings, by pool.
    kept: Mapping[UUID, Mapping[str, int]] = field(default_factory=dict)
    claims: defaultdict[Place, list[HeldHere]] = field(default_factory=lambda: defaultdict(list))
    pods: defaultdict[Place, list[OtherPod]] = field(default_factory=lambda: defaultdict(list))
    names: dict[UUID, str] = field(default_factory=dict)
    # Agents' reports.
    gpus: dict[NodeKey, list[Any]] = field(default_factory=dict)
    texts: ReportTexts = field(default_factory=ReportTexts)

    @classmethod
    def read(
        cls,
        pools: Collection[Pool],
        seen: Mapping[UUID, PoolNodes],
        kept: Mapping[UUID, Mapping[str, int]] | None = None,
    ) -> Nodes:
        """Make one from `seen`, the result of `nodes_of` for these pools, with or without runs.

        `kept`: units kept for bookings, if they were already read.
        """
        kept = kept_for_bookings(pools) if kept is None else kept
        return cls(seen, {pool.resource_name for pool in pools}, kept)

    def of(self, pool: Pool) -> list[Node]:
        return sorted(self.seen[pool.pk].nodes, key=lambda node: natural(node.name))

    def look_closer(self, shown: Iterable[Node], viewer: Viewer) -> None:
        """Read what is on these nodes, who has it, and agents' reports: a page shows few of many nodes."""
        shown = list(shown)
        pods = _pods_on(shown, self.resources)
        pods_of: defaultdict[tuple[UUID, str], list[Any]] = defaultdict(list)
        for pod in pods:
            if pod.run:
                pods_of[pod.run, pod.node].append(pod)
        counted, names = set[UUID](), {node.name for node in shown}
        for claim in _admitted(shown, {run for run, _node in pods_of}):
            for node, is_placed in members_at(claim.nodes, claim.pods_on):
                there = pods_of[claim.pk, node].pop() if is_placed and pods_of[claim.pk, node] else None
                held = (
                    HeldHere(claim, (there.namespace, there.name), there.devices)
                    if there
                    else HeldHere(claim)
                )
                if claim.units and node in names:
                    self.claims[claim.cluster, node, claim.resource].append(held)
            counted.add(claim.pk)
        self.pods = _other_pods(shown, [pod for pod in pods if pod.run not in counted], self.resources)
        known = [one.claim for held in self.claims.values() for one in held if viewer.knows(one.claim)]
        self.names = names_of(known)
        self.gpus = read_gpus(shown)

    def row(self, pool: Pool, node: Node, number: int, viewer: Viewer) -> NodeRow:
        place = (pool.cluster_id, node.name, pool.resource_name)
        gpus = self.gpus.get((node.cluster_id, node.name), [])
        offered = offered_units(node, pool)
        label = self._label(place, node, number, viewer)
        by_card = cards_of(pool, node, gpus, offered)
        # Where pods are given parts of cards, these are known from the pods.
        held = {} if sharing.of(pool).by_card or by_card is None else shares_held(gpus)
        trouble = trouble_of(node, pool, self.seen[pool.pk].bad.get((node.cluster_id, node.name), ()))
        return node_row(
            label,
            trouble,
            offered=offered,
            broken=withdrawn_units(node, pool),
            held=[*self._by_claims(place, node, viewer, held), *self._by_pods(place, held)],
            units_per_gpu=pool.units_per_gpu,
            kept=self.kept.get(pool.pk, {}).get(node.name, 0),
            cards=by_card,
            reports={gpu.uuid: self.texts.report_on(gpu) for gpu in gpus},
            why=why_unwell(node, label) if trouble == Trouble.UNWELL else "",
        )

    def _label(self, place: Place, node: Node, number: int, viewer: Viewer) -> str:
        """Admins read names of nodes. Others read a number, and the name where a run of their tenants says it too."""
        if viewer.actor.is_admin:
            return node.name
        if any(viewer.knows(one.claim) for one in self.claims[place]):
            return _("node %(number)s (%(name)s)") % {"number": number, "name": node.name}
        return _("node %(number)s") % {"number": number}

    def _by_claims(
        self, place: Place, node: Node, viewer: Viewer, held: Mapping[Pod, Shares]
    ) -> Iterable[Held]:
        for one in self.claims[place]:
            claim = one.claim
            kind = viewer.kind(claim)
            yield Held(
                kind,
                claim.units,
                who=_("held back until an admin confirms its end")
                if kind == Kind.RESERVED
                else viewer.who(claim),
                what=self.names.get(claim.holder_id, ""),
                page=page_of(claim) if viewer.knows(claim) else "",
                since=claim.admitted_at,
                reclaimed_at=claim.reclaim_at,
                cards=max(1, claim.cards),
                on=cards.shares_given(node.devices, one.devices)
                or _if_all(held.get(one.pod, ()), claim.units),
            )

    def _by_pods(self, place: Place, held: Mapping[Pod, Shares]) -> Iterable[Held]:
        """Yield pods without a claim: those with known cards together, and the others together."""
        whose = {True: _("a workspace that is just ending"), False: _("a program outside Berth")}
        for is_ours, who in whose.items():
            kind = Kind.RESERVED if is_ours else Kind.FOREIGN
            pods = [pod for pod in self.pods[place] if pod.is_ours == is_ours]
            shares = [pod.on or _if_all(held.get(pod.pod, ()), pod.units) for pod in pods]
            placed = tuple(share for on in shares for share in on)
            rest = sum(pod.units for pod, on in zip(pods, shares, strict=True) if not on)
            yield Held(kind, sum(units for _card, units in placed), who=who, on=placed)
            yield Held(kind, rest, who=who)


def why_unwell(node: Node, label: str) -> str:
    if code := node.out_code or node.gpus_out_code:
        return explain.sentence(code, {"node": label})
    return _("One of its GPUs does not work, and a new workspace could get it: nothing new starts there.")


def _if_all(shares: Shares, units: int) -> Shares:
    """Return the shares if they add up to the counted units; else nobody knows which is where."""
    return shares if sum(count for _card, count in shares) == units else ()


def natural(name: str) -> list[Any]:
    """Return a sort key: gpu-2 before gpu-10."""
    return [int(part) if part.isdecimal() else part for part in DIGITS.split(name)]


def queues(pools: Sequence[Pool], viewer: Viewer) -> dict[UUID, list[InQueue]]:
    """Return the first waiting claims of each pool, and all of the viewer's own. No query without pools."""
    found: defaultdict[UUID, list[InQueue]] = defaultdict(list)
    if not pools:
        return found
    # In the order last decided; later claims are behind those.
    order = (F("position").asc(nulls_last=True), F("priority").desc(), F("place").asc())
    rows = (
        Claim.objects.filter(state=Claim.State.WAITING, pool__in=pools)
        .annotate(
            **NAMED, ahead=place_in_queue(), rank=Window(RowNumber(), partition_by="pool_id", order_by=order)
        )
        .filter(Q(rank__lte=QUEUE_SHOWN) | Q(user=viewer.actor.user))
        .prefetch_related("pool")  # few pools, each with many claims
        .order_by("rank")
    )
    waiting = list(rows)
    names = names_of([claim for claim in waiting if viewer.knows(claim)])
    for claim in waiting:
        found[claim.pool_id].append(_in_queue(claim, viewer, names))
    return found


def scattered_requests(pools: Sequence[Pool]) -> defaultdict[UUID, list[int]]:
    """Return the units of claims that wait because free units lie on several nodes, by pool."""
    found: defaultdict[UUID, list[int]] = defaultdict(list)
    rows = Claim.objects.filter(state=Claim.State.WAITING, pool__in=pools, reason_code="fragmented")
    for pool, units in rows.values_list("pool_id", "units"):
        found[pool].append(units)
    return found


def booked_soon(actor: Actor, pools: Sequence[Pool]) -> defaultdict[UUID, list[bookings.Seen]]:
    """Return bookings of each pool that have begun, or begin within a day."""
    now = timezone.now()
    return bookings.seen_by_pool(actor, pools, now, now + SOON)


def why_of_others(code: str) -> str:
    """Return a reason without figures: figures are for the person who waits, not for other tenants."""
    if code in reasons.OF_POOL:
        return reasons.sentence(code, {})
    if "quota" in code or "limit" in code or code == "behind_own_tenant":
        return _("Waits for a limit of its own tenant.")
    if code.startswith("behind"):
        return _("Earlier requests are ahead of it.")
    return _("There is not enough room for it yet.")


def _in_queue(claim: Claim, viewer: Viewer, names: dict[UUID, str]) -> InQueue:
    knows = viewer.knows(claim)
    is_mine = knows and claim.user_id == viewer.actor.user.pk
    ahead = claim.ahead  # type: ignore[attr-defined]
    own = reasons.in_queue(claim.reason_code, claim.reason_data, ahead)
    return InQueue(
        position=ahead + 1,
        asked=figure(claim.units, claim.pool.units_per_gpu),
        since=claim.created_at,
        why=own["message"] if is_mine else why_of_others(claim.reason_code),
        is_mine=is_mine,
        who=viewer.who(claim) if knows else "",
        what=names.get(claim.holder_id, ""),
        page=page_of(claim) if knows else "",
        when=forecast_in_words(claim, timezone.now()) if knows else "",
        nodes=claim.members,
    )


HOLDING = (
    "pk", "holder_kind", "holder_id", "tenant_id", "user_id", "units", "cards", "nodes", "admitted_at", "reclaim_at",
    "end_unproven_since",
)  # fmt: skip
POD = ("cluster_id", "node", "run", "requests", "devices", "namespace", "name")


def _pods_on(nodes: Sequence[Node], resources: set[str]) -> list[Any]:
    """Return pods of runs, and all others that have GPUs."""
    clusters, names = {node.cluster_id for node in nodes}, {node.name for node in nodes}
    found = Q(run__isnull=False) | Q(requests__has_any_keys=list(resources))
    pods = PodUsage.objects.filter(found, cluster__in=clusters, node__in=names)
    return list(pods.values_list(*POD, named=True))


def _admitted(nodes: Sequence[Node], runs: Iterable[UUID]) -> Iterable[Any]:
    """Return rows of the claims whose pods are there, and of those for which one of these nodes was chosen."""
    clusters, names = {node.cluster_id for node in nodes}, [node.name for node in nodes]
    chosen = Q(nodes__overlap=names, pool__cluster__in=clusters)
    return (
        Claim.objects.filter(Q(pk__in=list(runs)) | chosen, state=Claim.State.ADMITTED)
        .annotate(**NAMED, cluster=F("pool__cluster_id"), resource=F("pool__resource_name"), pods_on=PODS_ON)
        .values_list(*HOLDING, *NAMED, "cluster", "resource", "pods_on", named=True)
    )


def _other_pods(
    nodes: Iterable[Node], pods: Iterable[Any], resources: set[str]
) -> defaultdict[Place, list[OtherPod]]:
    devices = {(node.cluster_id, node.name): node.devices for node in nodes}
    found: defaultdict[Place, list[OtherPod]] = defaultdict(list)
    for pod in pods:
        on = cards.shares_given(devices.get((pod.cluster_id, pod.node), []), pod.devices)
        for resource in resources & pod.requests.keys():
            units = sum(share for _card, share in on) if pod.devices else int(pod.requests[resource])
            other = OtherPod(units, pod.run is not None, on, (pod.namespace, pod.name))
            found[pod.cluster_id, pod.node, resource].append(other)
    return found
