"""What the map of GPUs shows one person: pools, who holds what on their nodes, and the queue.

People are named only to who is in their tenant, and to admins; to others they are “another tenant”. Nodes have their
names for admins alone: elsewhere they are counted. The number of queries does not grow with what there is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from accounts.access import Actor, visible_tenants
from accounts.models import Membership
from clusters.models import Node, PodUsage
from quotas import pool_state, reasons
from quotas.bookings import changes as bookings
from quotas.models import Booking, Claim, Pool, Sharing
from quotas.pools import cards
from quotas.pools.gpu_map import Held, Kind, NodeRow, figure, node_row
from quotas.pools.health import broken_units, trouble_of
from quotas.pools.nodes import PoolNodes, offered_units
from quotas.pools.selection import members
from quotas.queries import names_of, place_in_queue
from quotas.scheduling import kept_now
from quotas.when import told_in_words

QUEUE_SHOWN = 20
SOON = timedelta(days=1)
DIGITS = re.compile(r"(\d+)")

Place = tuple[UUID, str, str]  # cluster, node, resource


@dataclass(frozen=True)
class InQueue:
    """One that waits. `who` is empty for another tenant's."""

    position: int
    asked: float
    since: datetime
    why: str
    is_mine: bool
    who: str = ""
    what: str = ""
    holder: UUID | None = None
    when: str = ""


@dataclass
class Viewer:
    """Who looks, and what they may know."""

    actor: Actor

    @cached_property
    def visible(self) -> set[UUID]:
        return set(visible_tenants(self.actor).values_list("pk", flat=True))

    @cached_property
    def joined(self) -> set[UUID]:
        return set(Membership.objects.filter(user=self.actor.user).values_list("tenant_id", flat=True))

    def kind(self, claim: Claim) -> Kind:
        if claim.end_unproven_since:
            return Kind.RESERVED
        if claim.user_id == self.actor.user.pk and claim.tenant_id in self.visible:
            return Kind.MINE
        return Kind.TENANT if claim.tenant_id in self.joined else Kind.OTHER

    def knows(self, claim: Claim) -> bool:
        return claim.tenant_id in self.visible

    def who(self, claim: Claim) -> str:
        if not self.knows(claim):
            return _("another tenant")
        names = {"person": claim.user.get_username(), "tenant": claim.tenant.name}
        return _("%(person)s of %(tenant)s") % names


@dataclass(frozen=True)
class OtherPod:
    """A pod that no admitted claim stands for; ours are those that are just ending."""

    units: int
    is_ours: bool
    on: tuple[tuple[str, int], ...]


@dataclass
class Nodes:
    """Everything that is on the nodes of some clusters, read at once."""

    nodes: list[Node]
    claims: defaultdict[Place, list[Claim]]
    pods: defaultdict[Place, list[OtherPod]]
    names: dict[UUID, str] = field(default_factory=dict)
    # Cards that pods of claims were given, and what bookings keep of each node.
    given: dict[UUID, list[cards.Device]] = field(default_factory=dict)
    kept: dict[tuple[UUID, str], int] = field(default_factory=dict)

    @classmethod
    def read(
        cls, pools: Collection[Pool], viewer: Viewer, seen: Mapping[UUID, PoolNodes] | None = None
    ) -> Nodes:
        """`seen`: what `nodes_of` says of these pools, if they were read already."""
        clusters = {pool.cluster_id for pool in pools}
        nodes = sorted(Node.objects.filter(cluster__in=clusters), key=lambda node: natural(node.name))
        claims: defaultdict[Place, list[Claim]] = defaultdict(list)
        given: dict[UUID, list[cards.Device]] = {}
        for claim in _admitted(clusters):
            given[claim.pk] = claim.given or []
            claims[claim.pool.cluster_id, claim.at, claim.pool.resource_name].append(claim)
        resources = {pool.resource_name for pool in pools}
        known = [claim for held in claims.values() for claim in held if viewer.knows(claim)]
        return cls(
            nodes,
            claims,
            _other_pods(nodes, resources),
            names_of(known),
            given,
            _kept_for_bookings(pools, seen),
        )

    def of(self, pool: Pool) -> list[Node]:
        return members(pool, self.nodes)

    def row(self, pool: Pool, node: Node, number: int, viewer: Viewer) -> NodeRow:
        place = (pool.cluster_id, node.name, pool.resource_name)
        offered = offered_units(node, pool)
        is_admin = viewer.actor.user.is_staff
        return node_row(
            node.name if is_admin else _("node %(number)s") % {"number": number},
            trouble_of(node, pool),
            offered=offered,
            broken=broken_units(node, pool),
            held=[*self._by_claims(place, node, viewer), *self._by_pods(place)],
            units_per_gpu=pool.units_per_gpu,
            kept=self.kept.get((pool.pk, node.name), 0),
            cards={card["id"]: card["usable"] for card in node.devices}
            if pool.sharing == Sharing.HAMI
            else None,
        )

    def _by_claims(self, place: Place, node: Node, viewer: Viewer) -> Iterable[Held]:
        for claim in self.claims[place]:
            kind = viewer.kind(claim)
            yield Held(
                kind,
                claim.units,
                who=_("held back until an admin confirms its end")
                if kind == Kind.RESERVED
                else viewer.who(claim),
                what=self.names.get(claim.holder_id, ""),
                holder=claim.holder_id if viewer.knows(claim) else None,
                since=claim.admitted_at,
                asked_back=claim.reclaim_at,
                cards=max(1, claim.cards),
                on=cards.shares_given(node.devices, self.given[claim.pk]),
            )

    def _by_pods(self, place: Place) -> Iterable[Held]:
        whose = {True: _("a workspace that is just ending"), False: _("a program outside Berth")}
        for is_ours, who in whose.items():
            pods = [pod for pod in self.pods[place] if pod.is_ours == is_ours]
            yield Held(
                Kind.RESERVED if is_ours else Kind.FOREIGN,
                sum(pod.units for pod in pods),
                who=who,
                on=tuple(share for pod in pods for share in pod.on),
            )


def natural(name: str) -> list[Any]:
    """gpu-2 before gpu-10."""
    return [int(part) if part.isdecimal() else part for part in DIGITS.split(name)]


def queues(pools: Sequence[Pool], viewer: Viewer) -> dict[UUID, list[InQueue]]:
    """The first who wait for each pool, and the viewer's own wherever they stand."""
    # As last decided; who came since then is behind those.
    order = (F("position").asc(nulls_last=True), F("priority").desc(), F("place").asc())
    rows = (
        Claim.objects.filter(state=Claim.State.WAITING, pool__in=pools)
        .annotate(ahead=place_in_queue(), rank=Window(RowNumber(), partition_by="pool_id", order_by=order))
        .filter(Q(rank__lte=QUEUE_SHOWN) | Q(user=viewer.actor.user))
        .select_related("user", "tenant", "pool")
        .order_by("rank")
    )
    waiting = list(rows)
    names = names_of([claim for claim in waiting if viewer.knows(claim)])
    found: defaultdict[UUID, list[InQueue]] = defaultdict(list)
    for claim in waiting:
        found[claim.pool_id].append(_in_queue(claim, viewer, names))
    return found


def scattered_requests(pools: Sequence[Pool]) -> defaultdict[UUID, list[int]]:
    """Units of those that wait, by pool, because what is free lies on several nodes."""
    found: defaultdict[UUID, list[int]] = defaultdict(list)
    rows = Claim.objects.filter(state=Claim.State.WAITING, pool__in=pools, reason_code="fragmented")
    for pool, units in rows.values_list("pool_id", "units"):
        found[pool].append(units)
    return found


def booked_soon(actor: Actor, pools: Sequence[Pool]) -> defaultdict[UUID, list[bookings.Seen]]:
    """Bookings of each pool that have begun, or begin within a day."""
    now = timezone.now()
    rows = bookings.in_pools(actor).filter(
        pool__in=pools, cancelled_at=None, starts_at__lt=now + SOON, ends_at__gt=now
    )
    found: defaultdict[UUID, list[bookings.Seen]] = defaultdict(list)
    for seen in bookings.seen(actor, rows.order_by("starts_at", "pk")):
        found[seen.booking.pool_id].append(seen)
    return found


def why_of_others(code: str) -> str:
    """In few words: figures speak to who waits, and are no affair of other tenants."""
    if code in reasons.OF_POOL:
        return reasons.sentence(code, {})
    if "quota" in code or "limit" in code or code == "behind_own_tenant":
        return _("A limit of its own tenant holds it back.")
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
        holder=claim.holder_id if knows else None,
        when=told_in_words(claim, timezone.now()) if knows else "",
    )


def _kept_for_bookings(
    pools: Iterable[Pool], seen: Mapping[UUID, PoolNodes] | None
) -> dict[tuple[UUID, str], int]:
    """Units of each node, by pool and name, that a pass keeps free for bookings that have begun."""
    running = Booking.objects.filter(Booking.in_state(Booking.State.RUNNING))
    begun = set(running.values_list("pool", flat=True))
    queues: dict[Pool, tuple[Claim, ...]] = {pool: () for pool in pools if pool.pk in begun}
    states = pool_state.read_all(queues, seen) if queues else {}
    return {(pool, node): units for pool, state in states.items() for node, units in kept_now(state).items()}


def _admitted(clusters: set[UUID]) -> Iterable[Any]:
    """With where each really is, or else the node chosen for it; and the cards that its pod was given."""
    pods = PodUsage.objects.filter(run=OuterRef("pk"))
    return (
        Claim.objects.filter(state=Claim.State.ADMITTED, pool__cluster__in=clusters, units__gt=0)
        .annotate(at=Coalesce(Subquery(pods.values("node")[:1]), "node"))
        .annotate(given=Subquery(pods.values("devices")[:1]))
        .select_related("pool", "user", "tenant")
    )


def _other_pods(nodes: Sequence[Node], resources: set[str]) -> defaultdict[Place, list[OtherPod]]:
    devices = {(node.cluster_id, node.name): node.devices for node in nodes}
    clusters = {cluster for cluster, _name in devices}
    counted = Claim.objects.filter(pk=OuterRef("run"), state=Claim.State.ADMITTED)
    rows = PodUsage.objects.filter(
        ~Exists(counted), cluster__in=clusters, requests__has_any_keys=list(resources)
    ).values_list("cluster_id", "node", "run", "requests", "devices")
    found: defaultdict[Place, list[OtherPod]] = defaultdict(list)
    for cluster, node, run, requests, given in rows:
        on = cards.shares_given(devices.get((cluster, node), []), given)
        for resource in resources & requests.keys():
            units = sum(share for _card, share in on) if given else int(requests[resource])
            found[cluster, node, resource].append(OtherPod(units, run is not None, on))
    return found
