"""Room on the nodes of a pool, as last seen: allocatable less the requests of every pod there, ours or foreign.

For our own runs the claim counts and not the pod, so that room is taken from admission to release: for each member on
the node that its pod really is on, or else on the one chosen for it (`members.py`). Nodes may be in several pools, so
every claim of the cluster counts. Four queries, whatever the number of pools, nodes and pods; one more with HAMi, and
one if a GPU does not work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    Sum,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from clusters.models import Node, PodUsage
from clusters.nodes.gpus import NodeKey
from quotas import sharing
from quotas.models import Claim, Pool
from quotas.pools import bad_gpus, cards
from quotas.pools.bad_gpus import Bad
from quotas.pools.cards import Device
from quotas.pools.health import Judged, Out, cards_said, is_unwell, out_of, trouble_of
from quotas.pools.members import members_at
from quotas.pools.selection import each_member, members
from quotas.scheduling import Card, NodeState, Room, Run

MIB = 1024**2
# Whether a request could ever fit is mostly answered by the first few nodes of a large cluster.
FEW_NODES = 5
# Of a claim: the nodes of its pods.
PODS_ON = ArraySubquery(PodUsage.objects.filter(run=OuterRef("pk")).order_by("name", "uid").values("node"))
# Why a node takes nothing new: one of its GPUs does not work, and nobody knows who would get it.
ONE_OF_ITS_GPUS = "gpu_unhealthy"


@dataclass(frozen=True)
class PoolNodes:
    """Nodes of a pool: all of them, the room of each as if empty, and the healthy ones as they are."""

    nodes: tuple[Node, ...]
    whole: tuple[Room, ...]
    healthy: tuple[NodeState, ...]
    out: Out
    # GPUs that do not work, of all nodes of its cluster.
    bad: Mapping[NodeKey, Sequence[Bad]]

    @property
    def resting(self) -> frozenset[str]:
        """Nodes that take nothing new now."""
        return frozenset(node.name for node in self.nodes) - {node.name for node in self.healthy}


@dataclass
class _Taken:
    """Room taken on a node. Units count by the resource's name; `unplaced` are those without a pod yet."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pods: int = 0

    def __post_init__(self) -> None:
        self.units: defaultdict[str, int] = defaultdict(int)
        self.unplaced: defaultdict[str, int] = defaultdict(int)
        self.runs: list[Any] = []
        # For GPUs cut by memory and cores: cards that pods were given, and needs of runs without a pod yet.
        self.given: list[Device] = []
        self.coming: list[tuple[Card, ...]] = []


TakenByNode = defaultdict[NodeKey, _Taken]
# Cards of each pod, by the id of its claim and its node.
GivenCards = defaultdict[tuple[UUID, str], list[list[Device]]]
NOTHING = _Taken()  # never added to


def nodes_of(pools: Collection[Pool], *, with_runs: bool = True) -> dict[UUID, PoolNodes]:
    """Return the nodes of each pool, by the pool's id. Without `with_runs` only their room is read."""
    clusters = {pool.cluster_id for pool in pools}
    # Skip the kubelets' reports of themselves: most of a row, and nothing about room.
    nodes = list(Node.objects.filter(cluster__in=clusters).defer("system", "conditions"))
    bad = bad_gpus.read(clusters)
    for node in nodes:
        if of_node := bad.get((node.cluster_id, node.name)):
            bad_gpus.keep_off(node, of_node)
    foreign, ours = _taken(pools, with_runs=with_runs)
    return {
        pool.id: _pool_nodes(pool, members(pool, nodes), foreign=foreign, ours=ours, bad=bad)
        for pool in pools
    }


def unwell_nodes(pool: Pool) -> dict[str, str]:
    """Return the fault code of each node that Berth, not Kubernetes, keeps out of use: for itself or its GPUs."""
    bad = bad_gpus.read([pool.cluster_id])
    found = ~Q(out_code="") | ~Q(gpus_out_code="") | Q(name__in=[name for _cluster, name in bad])
    nodes = Node.objects.filter(found, cluster=pool.cluster_id).order_by("name")
    return {
        node.name: node.out_code or (pool.has_gpus and node.gpus_out_code) or ONE_OF_ITS_GPUS
        for node in nodes
        if is_unwell(node, pool, bad.get((node.cluster_id, node.name), ()))
    }


def free_on_each(pool: Pool) -> dict[str, Room]:
    """Return what is free on each node of the pool, also on one that takes nothing new now."""
    foreign, ours = _taken([pool], with_runs=False)
    nodes = members(pool, Node.objects.filter(cluster=pool.cluster_id))
    keys = {node: (node.cluster_id, node.name) for node in nodes}
    return {node.name: _left(node, pool, foreign[key], ours[key]) for node, key in keys.items()}


def _taken(pools: Collection[Pool], *, with_runs: bool) -> tuple[TakenByNode, TakenByNode]:
    """Return the room taken by foreign pods and by ours, on the nodes of the pools' clusters."""
    clusters = {pool.cluster_id for pool in pools}
    resources = sorted(
        {name for pool in pools for name in (pool.resource_name, *pool.extra_resources) if name}
    )
    foreign, ours = _taken_by_pods(clusters, resources)
    has_cards = any(sharing.of(pool).by_card for pool in pools)
    given = _take_given(foreign, ours, clusters) if has_cards else defaultdict(list)
    _add_claims(ours, clusters, given, with_runs=with_runs)
    return foreign, ours


def claims_on(cluster_id: UUID, node: str) -> list[Claim]:
    """Return the claims with a pod on the node, and admitted ones of several members with a pod expected there."""
    pods = PodUsage.objects.filter(cluster=cluster_id, node=node, run__isnull=False)
    expected = Q(state=Claim.State.ADMITTED, pool__cluster=cluster_id, members__gt=1, nodes__contains=[node])
    rows = Claim.objects.filter(Q(pk__in=pods.values("run")) | expected).annotate(pods_on=PODS_ON)
    return [
        claim
        for claim in rows.select_related("pool").order_by("pk")
        if node in claim.pods_on or node in {one.node for one in members_at(claim.nodes, claim.pods_on)}
    ]


def offered_units(node: Node, pool: Pool) -> int:
    """Return the units that the node offers now, taken or free."""
    return _left(node, pool).units


def whole_nodes(pool: Pool) -> Iterator[Room]:
    """Yield the room of every node as if empty and healthy: faults may be repaired. Nodes are read as needed."""
    nodes = Node.objects.filter(cluster=pool.cluster_id).defer("system", "conditions").order_by("pk")
    first, others = nodes[:FEW_NODES], nodes[FEW_NODES:]
    return (_left(_as_if_well(node, pool), pool) for node in each_member(pool, chain(first, others)))


def _as_if_well(node: Node, pool: Pool) -> Node:
    """Make a node look healthy. A kubelet forgets what a lost device plugin offered; GPU labels stay."""
    node.allocatable = node.allocatable | node.capacity
    if node.gpus_out_code and not node.allocatable.get(pool.resource_name):
        node.allocatable[pool.resource_name] = cards_said(node, pool)
    node.devices = [device | {"usable": True} for device in node.devices]
    return node


def _pool_nodes(
    pool: Pool,
    nodes: Sequence[Node],
    *,
    foreign: TakenByNode,
    ours: TakenByNode,
    bad: Mapping[NodeKey, Sequence[Bad]],
) -> PoolNodes:
    whole, healthy, displaced, needs = [], [], 0, list[Room]()
    judged = list[Judged]()
    for node in nodes:
        key = (node.cluster_id, node.name)
        others, own = foreign.get(key, NOTHING), ours.get(key, NOTHING)
        empty = _left(node, pool)
        without_ours = empty if others is NOTHING else _left(node, pool, others)
        free = without_ours if own is NOTHING else _left(node, pool, others, own)
        whole.append(empty)
        displaced += min(max(0, -free.units), own.unplaced.get(pool.resource_name, 0))
        if sharing.of(pool).by_card:
            needs += [Room(cards=need) for need in _cards_left(node, others, own)[1]]
        trouble = trouble_of(node, pool, bad.get(key, ()))
        judged.append((node, trouble, empty.units, bad.get(key, ())))
        if not trouble:
            runs = tuple(_run(claim, pool) for claim in own.runs)
            healthy.append(NodeState(node.name, free, without_ours, runs))
    healthy = [*_set_aside(healthy, displaced)]
    for need in needs:
        _set_cards_aside(healthy, need)
    return PoolNodes(tuple(nodes), tuple(whole), tuple(healthy), out_of(pool, judged), bad)


def _set_aside(nodes: Iterable[NodeState], units: int) -> Iterator[NodeState]:
    """Yield the nodes with room set aside for pods that do not fit on the node chosen for them.

    A run whose pod was elsewhere and is gone needs room too, until its units are back: nothing is given twice.
    """
    for node in sorted(nodes, key=lambda node: node.free.units):
        taken = max(0, min(units, node.free.units))
        units -= taken
        yield replace(node, free=node.free - Room(taken, 0, 0, 0)) if taken else node


def _set_cards_aside(nodes: list[NodeState], need: Room) -> None:
    """Set cards aside on the first of the fullest nodes that holds them."""
    fullest = sorted(range(len(nodes)), key=lambda at: nodes[at].free.units)
    at = next((at for at in fullest if nodes[at].free.holds(need)), None)
    if at is not None:
        nodes[at] = replace(nodes[at], free=nodes[at].free - need)


def _cards_left(node: Node, *taken: _Taken) -> tuple[tuple[Card, ...], list[tuple[Card, ...]]]:
    given = [device for one in taken for device in one.given]
    coming = [need for one in taken for need in one.coming]
    return cards.left(node.devices, given, coming)


def _left(node: Node, pool: Pool, *taken: _Taken) -> Room:
    has = node.allocatable
    resource = pool.resource_name
    if sharing.of(pool).by_card:
        free, _displaced = _cards_left(node, *taken)
        units = cards.units(node.devices, free)
    else:
        free = ()
        units = has.get(resource, 0) - sum(t.units[resource] for t in taken) if resource else 0
    return Room(
        units=units,
        cpu_millicores=has.get("cpu", 0) - sum(t.cpu_millicores for t in taken),
        memory_mib=(has.get("memory", 0) - sum(t.memory_bytes for t in taken)) // MIB,
        pods=has.get("pods", 0) - sum(t.pods for t in taken),
        cards=free,
        extra=tuple(
            (name, has.get(name, 0) - sum(t.units[name] for t in taken))
            for name in sorted(pool.extra_resources)
        ),
        node=node.name,
    )


def _taken_by_pods(clusters: set[UUID], resources: list[str]) -> tuple[TakenByNode, TakenByNode]:
    """Return room taken by foreign pods, and by our pods that are still seen but whose claim no longer counts."""
    counted_by_claim = Claim.objects.filter(pk=OuterRef("run"), state=Claim.State.ADMITTED)
    sums = {f"units_{number}": _requested(name) for number, name in enumerate(resources)}
    rows = (
        PodUsage.objects.filter(~Exists(counted_by_claim), cluster__in=clusters)
        .annotate(foreign=ExpressionWrapper(Q(run__isnull=True), output_field=BooleanField()))
        .values("cluster_id", "node", "foreign")
        .annotate(pods=Count("pk"), cpu=_requested("cpu"), memory=_requested("memory"), **sums)
    )
    foreign: TakenByNode = defaultdict(_Taken)
    ours: TakenByNode = defaultdict(_Taken)
    for row in rows:
        taken = (foreign if row["foreign"] else ours)[row["cluster_id"], row["node"]]
        taken.cpu_millicores += row["cpu"]
        taken.memory_bytes += row["memory"]
        taken.pods += row["pods"]
        for number, name in enumerate(resources):
            taken.units[name] += cast(dict[str, int], row)[f"units_{number}"]
    return foreign, ours


def _take_given(foreign: TakenByNode, ours: TakenByNode, clusters: set[UUID]) -> GivenCards:
    """Add cards of pods without a counted claim to what is taken. Return those of the other pods."""
    counted = Claim.objects.filter(pk=OuterRef("run"), state=Claim.State.ADMITTED)
    rows = PodUsage.objects.filter(cluster__in=clusters).exclude(devices=[])
    by_claim: GivenCards = defaultdict(list)
    for cluster, node, run, devices, is_counted in rows.annotate(counted=Exists(counted)).values_list(
        "cluster_id", "node", "run", "devices", "counted"
    ):
        if run is not None and is_counted:
            by_claim[run, node].append(devices)
        else:
            (foreign if run is None else ours)[cluster, node].given += devices
    return by_claim


def _requested(name: str) -> Coalesce:
    return Coalesce(Sum(Cast(KeyTextTransform(name, "requests"), BigIntegerField())), 0)


def takes(
    claim: Any,
    *,
    counts: bool = True,
    only: frozenset[str] | None = None,
    extra: Mapping[str, int] = MappingProxyType({}),
) -> Room:
    """Return the room that each member of a claim, or of a row of one, asks for.

    `counts`: its units are those that are counted. `only`: the nodes that it can start on; None: any. `extra`: what it
    takes of resources beside GPUs.
    """
    return Room(
        units=claim.units if counts else 0,
        cpu_millicores=claim.cpu_millicores,
        memory_mib=claim.memory_mib,
        pods=1,
        cards=cards_needed(claim) if counts else (),
        extra=tuple(sorted(extra.items())),
        only=only,
    )


def cards_needed(claim: Any) -> tuple[Card, ...]:
    if not claim.cards:
        return ()
    return (Card(claim.card_memory_mib or 0, claim.card_cores or 0),) * int(claim.cards)


def _run(claim: Any, pool: Pool) -> Run:
    return Run(
        claim=claim.pk,
        tenant=claim.tenant_id,
        user=claim.user_id,
        takes=takes(
            claim,
            counts=claim.resource == pool.resource_name,
            extra={name: claim.extra[name] for name in pool.extra_resources if name in claim.extra},
        ),
        admitted_at=claim.admitted_at,
        # The end of a vanished pod is unknown until an admin confirms it.
        ends_at=None if claim.end_unproven_since else claim.ends_at,
        expected_end=claim.expected_end_at,
        in_pool=claim.pool_id == pool.id,
        booking=claim.booking_id,
        reclaim_at=claim.reclaim_at,
        reclaim_for=claim.reclaim_for,
        is_workspace=claim.holder_kind == Claim.Holder.WORKSPACE,
        priority=claim.priority,
        members=claim.members,
    )


TAKES = ("pk", "units", "cpu_millicores", "memory_mib", "cards", "card_memory_mib", "card_cores", "extra")
RUN = (
    *TAKES, "tenant_id", "user_id", "pool_id", "admitted_at", "ends_at", "end_unproven_since", "booking_id",
    "expected_end_at", "reclaim_at", "reclaim_for", "holder_kind", "priority", "members",
)  # fmt: skip


def _add_claims(
    taken_by_node: TakenByNode, clusters: set[UUID], given: GivenCards, *, with_runs: bool
) -> None:
    rows = (
        Claim.objects.filter(state=Claim.State.ADMITTED, pool__cluster__in=clusters)
        .annotate(pods_on=PODS_ON, cluster=F("pool__cluster_id"), resource=F("pool__resource_name"))
        .order_by("admitted_at", "pk")
        .values_list(*(RUN if with_runs else TAKES), "nodes", "pods_on", "cluster", "resource", named=True)
    )
    for row in rows:
        for node, is_placed in members_at(row.nodes, row.pods_on):
            taken = taken_by_node[row.cluster, node]
            units = row.cards or row.units  # as the pod requests it
            taken.units[row.resource] += units
            taken.unplaced[row.resource] += 0 if is_placed else units
            if is_placed and (devices := given.get((row.pk, node))):
                taken.given += devices.pop()
            elif row.cards:
                taken.coming.append(cards_needed(row))
            taken.cpu_millicores += row.cpu_millicores
            taken.memory_bytes += row.memory_mib * MIB
            taken.pods += 1
            for name, amount in row.extra.items():
                taken.units[name] += amount
            if with_runs:
                taken.runs.append(row)
