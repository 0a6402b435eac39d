"""The fixed cast: alice owns demo, bob is a member, victor a viewer, carol is of second, admin is staff."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.access import Actor
from accounts.models import Membership, Role, Tenant, User
from clusters.models import Cluster, Installation, Node
from quotas.models import Flavor, Pool, Quota
from workspaces.models import Image

GIB = 1024**3
PRODUCT = "NVIDIA-A100-SXM4-80GB"


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


def make_cast() -> Cast:
    """Two tenants, five people, one cluster of two nodes with 4 GPUs each, one pool, 4 GPUs for each tenant."""
    if not Installation.objects.exists():  # a flush between tests takes what the migration made
        Installation.objects.create()
    demo = Tenant.objects.create(slug="demo", name="Demo")
    second = Tenant.objects.create(slug="second", name="Second")
    people = {
        name: User.objects.create_user(name, f"{name}@example.org", f"{name}-password")
        for name in ("alice", "bob", "victor", "carol")
    }
    staff = User.objects.create_user("admin", "admin@example.org", "admin-password", is_staff=True)
    for tenant, name, role in (
        (demo, "alice", Role.OWNER),
        (demo, "bob", Role.MEMBER),
        (demo, "victor", Role.VIEWER),
        (second, "carol", Role.MEMBER),
    ):
        Membership.objects.create(tenant=tenant, user=people[name], role=role)
    cluster = Cluster.objects.create(slug="main", name="Main", connection=Cluster.Connection.KUBECONFIG)
    for name in ("gpu-1", "gpu-2"):
        Node.objects.create(
            cluster=cluster,
            name=name,
            ready=True,
            labels={"nvidia.com/gpu.product": PRODUCT},
            allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "nvidia.com/gpu": 4},
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
    for tenant in (demo, second):
        Quota.objects.create(tenant=tenant, pool=pool, nominal_gpus=4)
    image = Image.objects.create(slug="jupyter", name="JupyterLab", reference="berth.local/jupyter:1")
    return Cast(
        demo=demo,
        second=second,
        **{name: Actor(user) for name, user in people.items()},
        admin=Actor(staff),
        cluster=cluster,
        pool=pool,
        flavor=flavor,
        image=image,
    )
