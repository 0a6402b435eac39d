"""Plans of pools and sizes for the nodes that a cluster has. Pure: nodes in, plans out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from clusters.nodes.node_labels import PRODUCT
from quotas.models import Pool
from quotas.pools.selection import chooses, plain_product, terms
from quotas.sharing import Found, found_on

GPU = "nvidia.com/gpu"
# Labels that say how a node shares its GPUs; preferred to any other.
TELLING = ("nvidia.com/mig.strategy", f"{GPU}.sharing-strategy", "gpu", "nvidia-device-enable")
HUNDREDTHS = 100
MAKERS = re.compile(r"^(NVIDIA|Tesla|Quadro|GeForce)-", re.IGNORECASE)
BUILD = re.compile(r"-(SXM\d|PCIe|HBM\d\w*)(?=-|$)", re.IGNORECASE)
FAMILY = re.compile(r"^[A-Z]{1,3}\d+[A-Z]*$")
SHARES = {2: "half", 3: "third", 4: "quarter"}
FORBIDDING_EFFECTS = ("NoSchedule", "NoExecute")

# A flavor's share of a node's CPU and memory per GPU; the rest is for the node's own pods.
FLAVOR_SHARE = 0.75
CPU_SMALL = (1000, 2048)
LONGEST_SLUG = 40


@dataclass(frozen=True)
class NodeSeen:
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    cpu_millicores: int
    memory_mib: int
    gpus: Mapping[str, int]  # extended resource to whole amount
    devices: Sequence[Mapping[str, Any]] = ()  # HAMi's cards


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
    sharing: str
    resource_name: str
    units_per_gpu: int
    total_gpus: int
    flavors: Sequence[FlavorPlan]
    match_product: str = ""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    mig_profile: str = ""
    gpu_product: str = ""
    gpu_memory_mib: int | None = None
    unit_memory_mib: int | None = None
    compute_capability: str = ""
    tolerations: Sequence[Mapping[str, str]] = field(default=())

    def with_free_slugs(self, pools: set[str], flavors: set[str]) -> PoolPlan:
        """Return the plan with slugs that are not taken yet, and add them to those that are."""
        sizes = [replace(flavor, slug=free_slug(flavor.slug, flavors)) for flavor in self.flavors]
        return replace(self, slug=free_slug(self.slug, pools), flavors=sizes)


def free_slug(slug: str, taken: set[str]) -> str:
    """Return the slug, or with a number behind it, so that it is not taken; take it."""
    tries = (slug, *(f"{slug[: LONGEST_SLUG - 4]}-{number}" for number in range(2, 1000)))
    found = next(one for one in tries if one not in taken)
    taken.add(found)
    return found


def plan_pools(nodes: Iterable[NodeSeen]) -> list[PoolPlan]:
    """Plan one pool per GPU product and way of sharing, and one without GPUs."""
    nodes = list(nodes)
    offers = [Offer(node, found) for node in nodes if (found := largest_on(node))]
    pools = list[PoolPlan]()
    for _kind, group in groupby(sorted(offers, key=Offer.kind), key=Offer.kind):
        members = list(group)
        others = [offer.node for offer in offers if offer.kind() != members[0].kind()]
        pools.append(gpu_pool(members, others, {pool.slug for pool in pools}))
    return [*pools, cpu_pool(nodes)]


@dataclass(frozen=True)
class Offer:
    """A node, and the GPU resource that its pool would offer."""

    node: NodeSeen
    found: Found

    @property
    def model(self) -> str:
        return plain_product(self.node.labels.get(PRODUCT, "GPU"))

    def kind(self) -> tuple[str, str, str, int]:
        """Key that is the same for all nodes of a pool."""
        return self.model, self.found.sharing, self.found.resource, self.found.units_per_gpu


def largest_on(node: NodeSeen) -> Found | None:
    """Return the largest offer. On a MIG "mixed" node: the profile with the most instances, even beside whole GPUs."""
    found = found_on(node.labels, node.gpus, node.devices)
    return max(found, key=lambda one: (one.mig_profile != "", one.units, one.resource), default=None)


def gpu_pool(members: Sequence[Offer], others: Sequence[NodeSeen], taken: Collection[str]) -> PoolPlan:
    node, found, model = members[0].node, members[0].found, members[0].model
    cut = " MIG" if found.mig_profile else " shared" if found.units_per_gpu > 1 else ""
    stem, name = family(model), short_name(model)
    ending = cut.lower().replace(" ", "-")
    if stem + ending in taken:
        stem, name = slugify(MAKERS.sub("", model)), model.replace("-", " ")
    plan = PoolPlan(
        slug=stem + ending,
        name=name + cut,
        match_product=model if PRODUCT in node.labels else "",
        sharing=found.sharing,
        resource_name=found.resource,
        units_per_gpu=found.units_per_gpu,
        mig_profile=found.mig_profile,
        total_gpus=sum(offer.found.gpus for offer in members),
        flavors=gpu_flavors(stem, name, members),
        gpu_product=model,
        gpu_memory_mib=found.gpu_memory_mib,
        unit_memory_mib=found.unit_memory_mib or memory_of_a_card(found),
        compute_capability=".".join(
            node.labels[f"{GPU}.compute.{part}"]
            for part in ("major", "minor")
            if f"{GPU}.compute.{part}" in node.labels
        ),
        tolerations=[
            {"key": GPU, "operator": "Exists", "effect": effect}
            for effect in FORBIDDING_EFFECTS
            if any(
                taint.get("key") == GPU and taint.get("effect") == effect
                for offer in members
                for taint in offer.node.taints
            )
        ],
    )
    return replace(plan, node_labels=telling_labels(plan, [offer.node for offer in members], others))


def memory_of_a_card(found: Found) -> int | None:
    """Return the memory of a unit that is a whole GPU; None for smaller units: nobody reports it."""
    return found.gpu_memory_mib if found.units_per_gpu == 1 else None


def telling_labels(plan: PoolPlan, members: Sequence[NodeSeen], others: Iterable[NodeSeen]) -> dict[str, str]:
    """Return a label of the members alone, if the pool would also choose nodes that share the same GPU differently."""
    chosen_by = terms(
        Pool(
            match_product=plan.match_product,
            sharing=plan.sharing,
            resource_name=plan.resource_name,
            mig_profile=plan.mig_profile,
        )
    )
    alike = [node for node in others if chooses(chosen_by, node.labels)]
    if not alike:
        return {}
    common = set.intersection(*(set(node.labels.items()) for node in members))
    telling = [
        (name, value) for name, value in common if all(node.labels.get(name) != value for node in alike)
    ]
    return dict(sorted(telling, key=lambda label: (label[0] not in TELLING, label))[:1])


def gpu_flavors(stem: str, gpu: str, members: Sequence[Offer]) -> list[FlavorPlan]:
    """Plan flavors. Whole GPUs: 1, 2 and 4 as far as a node has them. Hundredths: 1/4, 1/2 and 1. Else one unit."""
    found = members[0].found
    if found.mig_profile:
        name = f"MIG {found.mig_profile} of {gpu}"
        return [FlavorPlan(f"mig-{found.mig_profile.split('.')[0]}", name, 1, *fair_share(1, members))]
    if found.units_per_gpu == 1:
        most = max(offer.found.units for offer in members)
        return [
            FlavorPlan(f"{stem}-{units}", f"{units} × {gpu}", units, *fair_share(units, members))
            for units in (1, 2, 4)
            if units <= most
        ]
    if found.units_per_gpu == HUNDREDTHS:
        return [
            FlavorPlan(f"{stem}-{part}", f"{told} {gpu}", units, *fair_share(units, members))
            for units, part, told in (
                (25, "quarter", "1/4 of"),
                (50, "half", "1/2 of"),
                (100, "whole", "1 ×"),
            )
        ]
    part = SHARES.get(found.units_per_gpu, "share")
    return [FlavorPlan(f"{stem}-{part}", f"1/{found.units_per_gpu} of {gpu}", 1, *fair_share(1, members))]


def fair_share(units: int, members: Sequence[Offer]) -> tuple[int, int]:
    """CPU (millicores) and memory (MiB) for so many units on the smallest node, in round numbers."""

    def least(amount: Callable[[NodeSeen], int]) -> float:
        return min(
            amount(offer.node) * units / offer.found.units for offer in members if offer.found.units >= units
        )

    cpu = least(lambda node: node.cpu_millicores) * FLAVOR_SHARE
    memory = least(lambda node: node.memory_mib) * FLAVOR_SHARE
    return max(500, int(cpu // 500) * 500), max(512, int(memory // 512) * 512)


def cpu_pool(nodes: Sequence[NodeSeen]) -> PoolPlan:
    """Plan a pool of the nodes without GPUs, if a label separates them; else of all nodes."""
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
        sharing=Pool().sharing,
        resource_name="",
        units_per_gpu=1,
        total_gpus=0,
        flavors=[FlavorPlan("cpu-small", "Small, without GPU", 0, *CPU_SMALL)],
    )


def forbids(node: NodeSeen) -> bool:
    return any(taint.get("effect") in FORBIDDING_EFFECTS for taint in node.taints)


def family(model: str) -> str:
    """Return `a100` for `NVIDIA-A100-SXM4-80GB`; a model without such a word keeps its name."""
    words = MAKERS.sub("", model).split("-")
    found = next((word for word in words if FAMILY.match(word)), None)
    return found.lower() if found else slugify(MAKERS.sub("", MAKERS.sub("", model)))


def short_name(model: str) -> str:
    """Return the name that people use: A100 80GB for `NVIDIA-A100-SXM4-80GB`."""
    return BUILD.sub("", MAKERS.sub("", MAKERS.sub("", model))).replace("-", " ")


def slugify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30]
