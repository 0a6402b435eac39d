"""Who holds how much at one moment, and the most that anybody may: read from rows, without the code under test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.utils import timezone

from clusters.models import Node
from quotas.models import Claim, Pool, Quota, TenantLimit
from tests.quotas.stage import GPU

Held = Counter[tuple[str, ...]]
NO_LIMIT = 1 << 60


def held(claims: Iterable[Claim]) -> Held:
    """By node, by tenant and pool, and by tenant over all pools."""
    sums: Held = Counter()
    for claim in claims:
        tenant = str(claim.tenant_id)
        sums["GPUs of node", str(claim.pool.cluster_id), claim.node] += claim.units
        sums["GPUs of tenant in pool", tenant, str(claim.pool_id)] += claim.units
        sums["CPU of tenant", tenant] += claim.cpu_millicores
        sums["workspaces of tenant", tenant] += 1
    return sums


def held_now() -> Held:
    """One snapshot."""
    return held(Claim.objects.filter(state="admitted").select_related("pool"))


def allowed_now() -> Held:
    most: Held = Counter()
    for node in Node.objects.all():
        most["GPUs of node", str(node.cluster_id), node.name] = node.allocatable[GPU]
    for pool in Pool.objects.all():
        for quota in Quota.objects.filter(pool=pool):
            most["GPUs of tenant in pool", str(quota.tenant_id), str(pool.pk)] = quota.nominal_gpus
    for limit in TenantLimit.objects.all():
        tenant = str(limit.tenant_id)
        most["CPU of tenant", tenant] = NO_LIMIT if limit.cpu_millicores is None else limit.cpu_millicores
        most["workspaces of tenant", tenant] = NO_LIMIT if limit.workspaces is None else limit.workspaces
    return most


class Most:
    """The most that may be held during a batch: what was allowed at any time of it, or held before.

    Who lowers a quota or shrinks a node takes nothing back from those who hold it.
    """

    def __init__(self) -> None:
        self.most = held_now() | allowed_now()

    def also(self, allowed: Held) -> None:
        self.most |= allowed

    def holds(self, sums: Held, when: object) -> None:
        too_much = {
            what: (amount, self.most[what]) for what, amount in sums.items() if amount > self.most[what]
        }
        assert not too_much, f"more than allowed {when}: {too_much}"


def at_every_admission_since(began: datetime) -> Iterator[tuple[datetime, Held]]:
    """What was held whenever a claim was admitted, by the claims' own intervals."""
    ran = list(Claim.objects.filter(admitted_at__isnull=False).select_related("pool"))
    for moment in sorted(
        claim.admitted_at for claim in ran if claim.admitted_at and claim.admitted_at >= began
    ):
        yield moment, held(claim for claim in ran if runs_at(claim, moment))


def runs_at(claim: Claim, moment: datetime) -> bool:
    assert claim.admitted_at is not None
    return claim.admitted_at <= moment and (claim.released_at is None or moment < claim.released_at)


def beside_free_room() -> list[Claim]:
    """Who is first of a pool's queue, not in back-off, and yet waits although nothing is in the way."""
    sums, most, now = held_now(), allowed_now(), timezone.now()
    queues: defaultdict[Any, list[Claim]] = defaultdict(list)
    waiting = Claim.objects.filter(state="waiting", not_before=None, pool__is_open=True).select_related(
        "pool"
    )
    for claim in waiting.order_by("-priority", "place"):
        if claim.not_before is None or claim.not_before < now:
            queues[claim.pool_id].append(claim)
    return [queue[0] for queue in queues.values() if fits(queue[0], sums, most)]


def fits(claim: Claim, sums: Held, most: Held) -> bool:
    more = held([claim])
    nodes = Node.objects.filter(cluster=claim.pool.cluster_id, ready=True)
    room = any(
        sums["GPUs of node", str(node.cluster_id), node.name] + claim.units <= node.allocatable[GPU]
        for node in nodes
        if claim.pool.node_labels.items() <= node.labels.items()
    )
    return room and all(
        sums[what] + amount <= most[what] for what, amount in more.items() if what[0] != "GPUs of node"
    )
