"""Which pools and flavors a first `make up` makes of the nodes that are there. Pure: nodes in, plans out."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

GPU = "nvidia.com/gpu"
PRODUCT, MEMORY = f"{GPU}.product", f"{GPU}.memory"
MIG_STRATEGY = "nvidia.com/mig.strategy"
MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(?P<profile>\dg\.\d+gb)$")
MAKERS = re.compile(r"^(NVIDIA|Tesla|Quadro|GeForce)-", re.IGNORECASE)
BUILD = re.compile(r"-(SXM\d|PCIe|HBM\d\w*)(?=-|$)", re.IGNORECASE)
FAMILY = re.compile(r"^[A-Z]{1,3}\d+[A-Z]*$")
SHARES = {2: "half", 3: "third", 4: "quarter"}
FORBIDDING_EFFECTS = ("NoSchedule", "NoExecute")

# Of a node's CPU and memory per GPU, what a flavor takes: the rest is for the node's own pods.
FLAVOR_SHARE = 0.75
CPU_SMALL = (1000, 2048)


@dataclass(frozen=True)
class NodeSeen:
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    cpu_millicores: int
    memory_mib: int
    gpus: Mapping[str, int]  # extended resource to whole amount


@dataclass(frozen=True)
class FlavorPlan:
    slug: str
    name: str
    units: int
    cpu_millicores: int
    memory_mib: int


@dataclass(frozen=True)
class PoolPlan:
    slug: str
    name: str
    node_labels: Mapping[str, str]
    sharing: str
    resource_name: str
    units_per_gpu: int
    total_gpus: int
    flavors: Sequence[FlavorPlan]
    gpu_product: str = ""
    gpu_memory_mib: int | None = None
    unit_memory_mib: int | None = None
    compute_capability: str = ""
    tolerations: Sequence[Mapping[str, str]] = field(default=())


def plan_pools(nodes: Iterable[NodeSeen]) -> list[PoolPlan]:
    """One pool per GPU product and way of sharing, and one without GPUs."""
    nodes = list(nodes)
    with_gpus = sorted((node for node in nodes if node.gpus), key=kind)
    pools = list[PoolPlan]()
    for (product, sharing, resource), group in groupby(with_gpus, key=kind):
        members = list(group)
        others = [node for node in with_gpus if node not in members]
        labels = telling_labels(product, members, others)
        pools.append(gpu_pool(product, sharing, resource, labels, members, {pool.slug for pool in pools}))
    return [*pools, cpu_pool(nodes)]


def kind(node: NodeSeen) -> tuple[str, str, str]:
    """What makes nodes one pool: product, sharing, and the resource that one unit is."""
    product = node.labels.get(PRODUCT, "GPU")
    # MIG "mixed": of several profiles, the one with the most instances.
    migs = {name: amount for name, amount in node.gpus.items() if MIG_RESOURCE.match(name)}
    if migs:
        return product, "mig", max(migs, key=lambda name: (migs[name], name))
    sharing = node.labels.get(f"{GPU}.sharing-strategy", "none")
    resource = max(node.gpus, key=lambda name: (node.gpus[name], name))
    if "-MIG-" in product:
        return product, "mig", resource
    return product, sharing if sharing in ("time-slicing", "mps") else "exclusive", resource


def gpu_pool(
    product: str,
    sharing: str,
    resource: str,
    node_labels: Mapping[str, str],
    nodes: Sequence[NodeSeen],
    taken: Collection[str],
) -> PoolPlan:
    model = re.sub(r"-(SHARED|MIG-.*)$", "", product)
    slug = base = family(model) + {"exclusive": "", "mig": "-mig"}.get(sharing, "-shared")
    name = short_name(model)
    if slug in taken:
        slug = f"{slugify(MAKERS.sub('', model))}{base.removeprefix(family(model))}"
        name = model.replace("-", " ")
    first = nodes[0].labels
    gpus_per_node = [int(node.labels.get(f"{GPU}.count", 0)) or node.gpus[resource] for node in nodes]
    units_per_gpu = 1 if sharing == "exclusive" else max(1, nodes[0].gpus[resource] // gpus_per_node[0])
    memory_mib = int(first.get(MEMORY, 0)) or None
    return PoolPlan(
        slug=slug,
        name=name + {"exclusive": "", "mig": " MIG"}.get(sharing, " shared"),
        node_labels=node_labels,
        sharing=sharing,
        resource_name=resource,
        units_per_gpu=units_per_gpu,
        total_gpus=sum(gpus_per_node),
        flavors=gpu_flavors(slug, name, sharing, resource, units_per_gpu, nodes),
        gpu_product=model,
        gpu_memory_mib=memory_mib,
        unit_memory_mib=unit_memory_mib(first, resource, memory_mib, units_per_gpu),
        compute_capability=".".join(
            first[f"{GPU}.compute.{part}"] for part in ("major", "minor") if f"{GPU}.compute.{part}" in first
        ),
        tolerations=[
            {"key": GPU, "operator": "Exists", "effect": effect}
            for effect in FORBIDDING_EFFECTS
            if any(
                taint.get("key") == GPU and taint.get("effect") == effect
                for node in nodes
                for taint in node.taints
            )
        ],
    )


def telling_labels(product: str, members: Iterable[NodeSeen], others: Iterable[NodeSeen]) -> dict[str, str]:
    """The product; and where others of the same are cut another way by MIG, the strategy, which tells them apart."""
    labels = {PRODUCT: product}
    strategies = {node.labels.get(MIG_STRATEGY) for node in members}
    strategy = strategies.pop() if len(strategies) == 1 else None
    if strategy and any(node.labels.get(PRODUCT) == product for node in others):
        labels[MIG_STRATEGY] = strategy
    return labels


def unit_memory_mib(
    first: Mapping[str, str], resource: str, gpu_memory_mib: int | None, units_per_gpu: int
) -> int | None:
    """What one unit has of a GPU's memory: a MIG instance's label says it, else each has the same part."""
    told = first.get(f"{resource}.memory")
    if told and resource != GPU:
        return int(told)
    return gpu_memory_mib // units_per_gpu if gpu_memory_mib else None


def gpu_flavors(
    slug: str, gpu: str, sharing: str, resource: str, units_per_gpu: int, nodes: Sequence[NodeSeen]
) -> list[FlavorPlan]:
    """Whole GPUs: 1, 2 and 4 as far as a node has them. Shared ones: one unit."""
    if sharing == "exclusive":
        most = max(node.gpus[resource] for node in nodes)
        return [
            FlavorPlan(f"{slug}-{units}", f"{units} × {gpu}", units, *fair_share(units, resource, nodes))
            for units in (1, 2, 4)
            if units <= most
        ]
    share = fair_share(1, resource, nodes)
    profile = MIG_RESOURCE.match(resource)
    if profile:
        name = f"MIG {profile['profile']} of {gpu}"
        return [FlavorPlan(f"mig-{profile['profile'].split('.')[0]}", name, 1, *share)]
    part = SHARES.get(units_per_gpu, "share")
    return [FlavorPlan(f"{slug.removesuffix('-shared')}-{part}", f"1/{units_per_gpu} of {gpu}", 1, *share)]


def fair_share(units: int, resource: str, nodes: Sequence[NodeSeen]) -> tuple[int, int]:
    """CPU (millicores) and memory (MiB) that go with so many units on the smallest node, in round numbers."""

    def least(amount: Callable[[NodeSeen], int]) -> float:
        return min(
            amount(node) * units / node.gpus[resource] for node in nodes if node.gpus[resource] >= units
        )

    cpu = least(lambda node: node.cpu_millicores) * FLAVOR_SHARE
    memory = least(lambda node: node.memory_mib) * FLAVOR_SHARE
    return max(500, int(cpu // 500) * 500), max(512, int(memory // 512) * 512)


def cpu_pool(nodes: Sequence[NodeSeen]) -> PoolPlan:
    """Nodes without GPUs, where a label tells them apart; else all nodes that take anybody."""
    without = [node for node in nodes if not node.gpus and not forbids(node)]
    others = [node for node in nodes if node.gpus]
    common = set.intersection(*(set(node.labels.items()) for node in without)) if without else set()
    telling = sorted(
        (name == "kubernetes.io/hostname", name, value)
        for name, value in common
        if all(node.labels.get(name) != value for node in others)
    )
    return PoolPlan(
        slug="cpu",
        name="CPU",
        node_labels={name: value for _, name, value in telling[:1]} if others else {},
        sharing="exclusive",
        resource_name="",
        units_per_gpu=1,
        total_gpus=0,
        flavors=[FlavorPlan("cpu-small", "Small, without GPU", 0, *CPU_SMALL)],
    )


def forbids(node: NodeSeen) -> bool:
    return any(taint.get("effect") in FORBIDDING_EFFECTS for taint in node.taints)


def family(model: str) -> str:
    """`NVIDIA-A100-SXM4-80GB` is an `a100`; what has no such word keeps its name."""
    words = MAKERS.sub("", model).split("-")
    found = next((word for word in words if FAMILY.match(word)), None)
    return found.lower() if found else slugify(MAKERS.sub("", MAKERS.sub("", model)))


def short_name(model: str) -> str:
    """`NVIDIA-A100-SXM4-80GB`, as people say it: A100 80GB."""
    return BUILD.sub("", MAKERS.sub("", MAKERS.sub("", model))).replace("-", " ")


def slugify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30]
