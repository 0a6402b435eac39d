"""Start of a GPU test by an admin: on a unit that is free at this moment, beside the queue, for minutes at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.access import Actor
from accounts.models import Scope
from accounts.trail import audit
from clusters.causes.cause import Diagnosis
from clusters.models import Cluster, Node
from monitoring import enqueue
from monitoring.health.judging import judge
from monitoring.models import Validation
from quotas.models import Claim, Pool
from quotas.pools.nodes import free_on_each, takes
from quotas.pools.selection import members
from quotas.scheduling import Room

from . import words
from .manifests import asked


@dataclass(frozen=True)
class Plan:
    """A test that can be started now, or the reason why not."""

    node: Node
    pool: Pool | None
    why_not: Diagnosis | None


@dataclass(frozen=True)
class Chances:
    """Facts of a pool that decide about a test: free room per node, tests under way, waiting requests."""

    pool: Pool
    free: Mapping[str, Room]
    busy: Set[tuple[UUID, str]] = frozenset()

    @cached_property
    def waiting(self) -> int:
        return Claim.objects.filter(pool=self.pool, state=Claim.State.WAITING).count()


def plans(nodes: Iterable[Node]) -> list[Plan]:
    """Return a plan per node, in the first pool that has its GPUs. A few queries for each pool in their clusters."""
    wanted, busy = list(nodes), under_way()
    pools = Pool.objects.filter(cluster__in={node.cluster_id for node in wanted}).exclude(resource_name="")
    chosen: dict[int, Pool] = {}
    for pool in pools.select_related("cluster").order_by("slug"):
        chosen = {node.pk: pool for node in members(pool, wanted)} | chosen
    chances = {pool: Chances(pool, free_on_each(pool), busy) for pool in set(chosen.values())}

    def plan(node: Node) -> Plan:
        pool = chosen.get(node.pk)
        if pool is None:
            return Plan(node, None, Diagnosis("validation_no_pool", {"node": node.name}))
        return Plan(node, pool, why_not(node.name, chances[pool]))

    return [plan(node) for node in wanted]


def plans_of(pool: Pool) -> list[Plan]:
    """Return a plan per node of the pool."""
    chances = Chances(pool, free_on_each(pool), under_way())
    nodes = members(pool, Node.objects.filter(cluster=pool.cluster_id))
    return [Plan(node, pool, why_not(node.name, chances)) for node in nodes]


def under_way() -> set[tuple[UUID, str]]:
    return set(Validation.objects.filter(ended_at=None).values_list("cluster_id", "node"))


def why_not(node: str, chances: Chances) -> Diagnosis | None:
    pool = chances.pool
    names = {"node": node, "pool": pool.name, "cluster": pool.cluster.name}
    need, room = takes(asked(pool)), chances.free.get(node)
    if not pool.cluster.validation_image:
        return Diagnosis("validation_without_image", names)
    if pool.driver_path:
        return Diagnosis("validation_without_driver", names)
    if (pool.cluster_id, node) in chances.busy:
        return Diagnosis("validation_under_way", names)
    if room is None:
        return Diagnosis("validation_no_node", names)
    if room.holds(need):
        return None
    if room.units < 1:
        return Diagnosis("validation_no_gpu", {**names, "waiting": chances.waiting})
    return Diagnosis("validation_no_room", names)


def start(actor: Actor | None, plan: Plan) -> Validation:
    """Start the test. `actor`: None for the command on the server. Raise Conflict if it is not possible now."""
    if actor is not None:
        actor.require(Scope.ADMIN)
    if plan.why_not is not None:
        raise words.refusal(plan.why_not)
    assert plan.pool is not None  # or `why_not` would be set
    cluster: Cluster = plan.pool.cluster
    try:
        with transaction.atomic():
            row = Validation.objects.create(
                cluster=cluster,
                pool=plan.pool,
                node=plan.node.name,
                image=cluster.validation_image,
                asked_by=actor.user if actor else None,
            )
            data = {"name": cluster.name, "node": row.node, "pool": plan.pool.name}
            audit.record(actor, "cluster.validate", target=cluster, data=data)
            enqueue_look(row.pk)
    except IntegrityError as error:
        if "one_validation_at_a_time" not in str(error):
            raise
        raise words.refusal(Diagnosis("validation_under_way", {"node": plan.node.name})) from error
    return row


@transaction.atomic
def enqueue_look(validation_id: UUID) -> None:
    Validation.objects.filter(pk=validation_id).update(queued_at=timezone.now())
    enqueue.validate(validation_id)


def overrule(actor: Actor, row: Validation) -> bool:
    """Allow the node although its test failed. Return False if there is nothing to overrule."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        failed = Validation.objects.filter(pk=row.pk, outcome=Validation.Outcome.FAILED, overruled_at=None)
        if not failed.update(overruled_at=timezone.now(), overruled_by=actor.user):
            return False
        data = {"name": row.cluster.name, "node": row.node}
        audit.record(actor, "cluster.overrule_validation", target=row.cluster, data=data)
        judge(row.cluster_id, row.node)
    return True
