"""Fixed cast of tests: in demo alice is owner, bob member, victor viewer; carol is in second; admin is staff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.hashers import make_password

from accounts.access import Actor
from accounts.models import Membership, Role, Tenant, User
from clusters.models import Cluster, Node
from quotas.models import Flavor, Pool, Quota
from workloads.models import Image

GIB = 1024**3
PRODUCT = "NVIDIA-A100-SXM4-80GB"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFwvZMfyHv1ftePWpJmr5erLJIrm9vAIU4fJoFbRDvX9 alice@laptop"
# Networks that a cluster must have known before anything is launched there.
NETWORKS: dict[str, Any] = {
    "pod_cidrs": ["10.42.0.0/16"],
    "service_cidrs": ["10.43.0.0/16"],
    "api_cidrs": ["192.0.2.10/32"],
}


@dataclass(frozen=True)
class Cast:
    demo: Tenant
    second: Tenant
    alice: Actor
    bob: Actor
    victor: Actor
    carol: Actor
    admin: Actor
    cluster: Cluster
    pool: Pool
    flavor: Flavor
    image: Image


def make_people(*, mail: str = "") -> tuple[list[Tenant], list[User]]:
    """Create two tenants and five people: in demo alice (owner), bob (member), victor (viewer); in second carol."""
    demo, second = Tenant.objects.bulk_create(
        [Tenant(slug="demo", name="Demo"), Tenant(slug="second", name="Second")]
    )
    alice, bob, victor, carol, admin = User.objects.bulk_create(
        User(
            username=name,
            email=f"{name}@{mail}" if mail else "",
            password=make_password(f"{name}-password"),
            is_staff=name == "admin",
        )
        for name in ("alice", "bob", "victor", "carol", "admin")
    )
    Membership.objects.bulk_create(
        Membership(tenant=tenant, user=user, role=role)
        for tenant, user, role in (
            (demo, alice, Role.OWNER),
            (demo, bob, Role.MEMBER),
            (demo, victor, Role.VIEWER),
            (second, carol, Role.MEMBER),
        )
    )
    return [demo, second], [alice, bob, victor, carol, admin]


def make_cast() -> Cast:
    """Create two tenants, five people, one cluster of two nodes with 4 GPUs each, one pool, 4 GPUs per tenant.

    Thousands of tests call this, so rows of one model are created in bulk.
    """
    (demo, second), (alice, bob, victor, carol, admin) = make_people(mail="example.org")
    cluster = Cluster.objects.create(
        slug="main",
        name="Main",
        connection=Cluster.Connection.KUBECONFIG,
        home_class="net-shared",
        shared_classes=["net-shared"],
        files_image="berth.local/jupyter:1",
        **NETWORKS,
    )
    Node.objects.bulk_create(
        Node(
            cluster=cluster,
            name=name,
            ready=True,
            labels={"nvidia.com/gpu.product": PRODUCT},
            allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "nvidia.com/gpu": 4},
        )
        for name in ("gpu-1", "gpu-2")
    )
    pool = Pool.objects.create(
        slug="a100",
        name="A100",
        cluster=cluster,
        node_labels={"nvidia.com/gpu.product": PRODUCT},
        gpu_product=PRODUCT,
        gpu_memory_mib=81_920,
        compute_capability="8.0",
    )
    flavor = Flavor.objects.create(
        slug="a100-1", name="One A100", pool=pool, units=1, cpu_millicores=4000, memory_mib=16_384
    )
    Quota.objects.bulk_create(Quota(tenant=tenant, pool=pool, nominal_gpus=4) for tenant in (demo, second))
    image = Image.objects.create(slug="jupyter", name="JupyterLab", reference="berth.local/jupyter:1")
    return Cast(
        demo=demo,
        second=second,
        alice=Actor(alice),
        bob=Actor(bob),
        victor=Actor(victor),
        carol=Actor(carol),
        admin=Actor(admin),
        cluster=cluster,
        pool=pool,
        flavor=flavor,
        image=image,
    )
