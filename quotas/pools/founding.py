"""Making pools from the nodes of a cluster: the plans for it, and the rows of one plan."""

from __future__ import annotations

from dataclasses import asdict

from clusters.api import Api
from clusters.models import Cluster, Node
from clusters.nodes.inventory import NodeValues, node_values
from quotas.models import Flavor, Pool
from quotas.pools.planning import NodeSeen, PoolPlan, plan_pools

MIB = 1024 * 1024
MAKERS = ("nvidia.com/", "tencent.com/vcuda-")  # name prefixes of GPU resources


def plans_of(api: Api) -> list[PoolPlan]:
    """Plan the pools of a cluster. Raises ClusterError."""
    return plan_pools(node_known(node_values(body)) for body in api.list("Node"))


def missing_plans(cluster: Cluster) -> list[PoolPlan]:
    """Plan the pools that the known nodes of a cluster do not have yet, with slugs that no pool has."""
    there = {identity(pool) for pool in Pool.objects.filter(cluster=cluster)}
    taken = set(Pool.objects.values_list("slug", flat=True))
    sizes = set(Flavor.objects.values_list("slug", flat=True))
    wanted = [
        plan for plan in plan_pools(map(node_known, cluster.nodes.all())) if identity(plan) not in there
    ]
    return [plan.with_free_slugs(taken, sizes) for plan in wanted]


def identity(pool: Pool | PoolPlan) -> tuple[str, str, str, str, tuple[tuple[str, str], ...]]:
    """Return what tells one pool of a cluster from another: which nodes, and how their GPUs are cut."""
    labels = tuple(sorted(pool.node_labels.items()))
    return pool.resource_name, pool.sharing, pool.mig_profile, pool.match_product, labels


def make_pool(cluster: Cluster, plan: PoolPlan) -> Pool:
    """Write the pool and its sizes."""
    values = asdict(plan)
    flavors, _total_gpus = values.pop("flavors"), values.pop("total_gpus")
    pool = Pool.objects.create(cluster=cluster, **values)
    for flavor in flavors:
        Flavor.objects.create(pool=pool, **flavor)
    return pool


def node_known(node: Node | NodeValues) -> NodeSeen:
    amounts = node.allocatable
    return NodeSeen(
        labels=node.labels,
        taints=node.taints,
        cpu_millicores=amounts.get("cpu", 0),
        memory_mib=amounts.get("memory", 0) // MIB,
        gpus={name: amount for name, amount in amounts.items() if name.startswith(MAKERS) and amount},
        devices=node.devices,
    )
