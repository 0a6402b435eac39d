"""The cast, and short ways to create nodes, pods and claims."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from accounts.access import Actor
from accounts.models import Tenant
from clusters.models import Node, PodUsage
from quotas import admission
from quotas.models import Claim, Pool, Quota
from quotas.sharing import Portion
from tests.cast import GIB, PRODUCT, make_cast

GPU = "nvidia.com/gpu"


class Stage:
    """The cast (`tests.cast`): nodes gpu-1 and gpu-2 with 4 GPUs each, pool a100, 4 GPUs for demo and for second."""

    def __init__(self) -> None:
        self.cast = make_cast()
        self.pool = self.cast.pool

    def quota(self, gpus: int, tenant: Tenant | None = None, pool: Pool | None = None) -> None:
        Quota.objects.update_or_create(
            tenant=tenant or self.cast.demo, pool=pool or self.pool, defaults={"nominal_gpus": gpus}
        )

    def another_pool(self, slug: str, **values: Any) -> Pool:
        labels = {"nvidia.com/gpu.product": PRODUCT}
        defaults = {"slug": slug, "name": slug, "cluster": self.cast.cluster, "node_labels": labels}
        return Pool.objects.create(**(defaults | values))

    def cpu_pool(self) -> Pool:
        self.node("cpu-1", 0, labels={"kind": "cpu"})
        return self.another_pool("cpu", node_labels={"kind": "cpu"}, resource_name="")

    def node(self, name: str, gpus: int = 4, **values: Any) -> Node:
        defaults = {
            "cluster": self.cast.cluster,
            "name": name,
            "labels": {"nvidia.com/gpu.product": PRODUCT},
            "ready": True,
            "allocatable": {"cpu": 64_000, "memory": 512 * GIB, "pods": 110, GPU: gpus},
        }
        return Node.objects.create(**(defaults | values))

    def change_node(self, name: str, **values: Any) -> None:
        assert Node.objects.filter(cluster=self.cast.cluster, name=name).update(**values)

    def pod(self, node: str, gpus: int = 0, *, run: uuid.UUID | None = None) -> PodUsage:
        uid = str(uuid.uuid4())
        return PodUsage.objects.create(
            cluster=self.cast.cluster,
            uid=uid,
            namespace="elsewhere",
            name=uid,
            node=node,
            run=run,
            requests={"cpu": 1000, "memory": GIB, GPU: gpus},
        )

    def request(self, gpus: int = 1, *, by: Actor | None = None, **values: Any) -> Claim:
        """Request GPUs: for alice in demo, or for carol in second."""
        by = by or self.cast.alice
        defaults: dict[str, Any] = {
            "tenant": self.cast.second if by == self.cast.carol else self.cast.demo,
            "user": by.user,
            "pool": self.pool,
            "portion": Portion(gpus),
            "cpu_millicores": 1000,
            "memory_mib": 1024,
            "holder_kind": Claim.Holder.WORKSPACE,
            "holder_id": uuid.uuid4(),
        }
        return admission.request(**(defaults | values))

    def running(self, gpus: int = 1, **values: Any) -> Claim:
        """Request GPUs and run a pass. Return the claim, which must be admitted."""
        claim = self.request(gpus, **values)
        self.admit(claim.pool)
        claim.refresh_from_db()
        assert claim.state == Claim.State.ADMITTED, claim.reason_code
        return claim

    def admit(self, pool: Pool | None = None) -> int:
        return admission.admit((pool or self.pool).id)


def states(claims: Iterable[Claim]) -> list[str]:
    return [str(again(claim).state) for claim in claims]


def again(claim: Claim) -> Claim:
    return Claim.objects.get(pk=claim.pk)


def admitted_units() -> int:
    return sum(Claim.objects.filter(state=Claim.State.ADMITTED).values_list("units", flat=True))
