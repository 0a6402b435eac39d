"""The demo data of a first `make up`: people, tenants, and pools and quotas from the nodes that are there.

Made once per database, in one transaction: what an admin changes or deletes afterwards stays so.
"""

import os
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import Membership, Role, Tenant, User
from clusters.connections import api_for
from clusters.isolation.deciding import names
from clusters.isolation.finding import look
from clusters.isolation.networks import missing
from clusters.models import Cluster
from portal.up import networks
from portal.up.people import PEOPLE
from portal.up.refusal import Refusal
from quotas.models import Quota
from quotas.pools.founding import make_pool
from quotas.pools.planning import PoolPlan
from workloads.models import Image

TRIAL_CLUSTER, REAL_CLUSTER = "trial", "default"
# Part of the trial cluster, which has no GPUs: it only prints what NVIDIA's sample prints.
TRIAL_VALIDATION_IMAGE = "devcluster.local/simulated-vectoradd:passes"
DEFAULT_IMAGE = "berth/workspace:1"  # deploy/images/workspace builds it


TENANTS = {"demo": "Demo", "second": "Second"}
MEMBERSHIPS = (
    ("demo", "alice", Role.OWNER),
    ("demo", "bob", Role.MEMBER),
    ("second", "carol", Role.MEMBER),
)
# Quotas in the trial cluster's own pools: (nominal, may borrow) per tenant. Any other pool is halved.
TRIAL_QUOTAS = {
    ("demo", "a100"): (4, 2),
    ("second", "a100"): (4, 4),
    ("demo", "t4-shared"): (4, 0),
    ("second", "t4-shared"): (4, 0),
    ("demo", "a100-mig"): (2, 0),
    ("second", "a100-mig"): (2, 0),
}


def image_reference() -> str:
    return os.environ.get("BERTH_WORKSPACE_IMAGE") or DEFAULT_IMAGE


def is_trial_cluster() -> bool:
    return "BERTH_DEVCLUSTER_PORT" in os.environ


def expected_cluster() -> Cluster:
    """The cluster of this start, not yet saved: KUBECONFIG's current context."""
    real = not is_trial_cluster()
    home_class = os.environ.get("BERTH_HOME_CLASS", "")
    return Cluster(
        slug=REAL_CLUSTER if real else TRIAL_CLUSTER,
        name="Kubernetes" if real else "Trial cluster on this machine",
        connection=Cluster.Connection.KUBECONFIG,
        kubeconfig_path=os.environ["KUBECONFIG"],
        ssh_service_port=int(os.environ.get("BERTH_SSH_SERVICE_PORT", "22")),
        disk_class=os.environ.get("BERTH_DISK_CLASS", ""),
        home_class=home_class,
        shared_classes=[]
        if real or not home_class
        else [home_class],  # several nodes reach the trial's homes
        validation_image="" if real else TRIAL_VALIDATION_IMAGE,
        files_image=image_reference(),
        without_isolation=not real,  # docs/trial-cluster.md: a trial is no boundary
        **({} if real else trial_networks()),
    )


def find_networks(cluster: Cluster) -> None:
    """Fill in the networks that a real cluster tells. If one stays unknown, it runs without isolation, and says so."""
    cluster.found_networks, cluster.networks_found_at = look(api_for(cluster)), timezone.now()
    cluster.without_isolation = cluster.without_isolation or bool(missing(cluster))


def trial_networks() -> dict[str, Any]:
    return {**networks.TRIAL, "allowed_cidrs": networks.needed(os.environ, networks.pip_settings())}


def refresh_cluster() -> bool:
    """Update a seeded cluster's address. Return False if nothing is seeded yet. Raise Refusal for another cluster."""
    expected = expected_cluster()
    if not Cluster.objects.exists():
        return False
    changed = Cluster.objects.filter(slug=expected.slug).update(
        kubeconfig_path=expected.kubeconfig_path,
        ssh_service_port=expected.ssh_service_port,
        without_isolation=F("without_isolation") if expected.slug == REAL_CLUSTER else True,
    )
    if not changed:
        raise Refusal(
            "This database was made for another cluster. Choose another BERTH_STATE_DIR "
            "(or DATABASE_URL), or set KUBECONFIG as it was."
        )
    if reference := os.environ.get("BERTH_WORKSPACE_IMAGE"):
        Image.objects.filter(slug="jupyter").update(reference=reference)
        Cluster.objects.filter(slug=expected.slug).exclude(files_image="").update(files_image=reference)
    return True


@transaction.atomic
def seed(cluster: Cluster, pools: Iterable[PoolPlan], password: str) -> None:
    seed_people(password)
    cluster.save()
    Image.objects.create(
        slug="jupyter",
        name="JupyterLab",
        description="Python with JupyterLab and SSH",
        reference=image_reference(),
    )
    for plan in pools:
        seed_pool(cluster, plan)


def seed_people(password: str) -> None:
    for person in PEOPLE:
        User.objects.create_user(
            person.username,
            f"{person.username}@berth.example",
            password,
            is_staff=person.is_staff,
            is_superuser=person.is_staff,
        )
    for slug, name in TENANTS.items():
        Tenant.objects.create(slug=slug, name=name)
    for slug, username, role in MEMBERSHIPS:
        tenant, user = Tenant.objects.get(slug=slug), User.objects.get(username=username)
        Membership.objects.create(tenant=tenant, user=user, role=role)


def set_passwords(password: str) -> None:
    """Set the demo people's password, after BERTH_DEMO_PASSWORD changed."""
    for user in User.objects.filter(username__in=[person.username for person in PEOPLE]):
        user.set_password(password)
        user.save(update_fields=["password"])


def seed_pool(cluster: Cluster, plan: PoolPlan) -> None:
    pool = make_pool(cluster, plan)
    if plan.resource_name:
        for tenant in Tenant.objects.filter(slug__in=TENANTS):
            nominal, borrowing = quota_for(cluster.slug, tenant.slug, plan)
            Quota.objects.create(
                tenant=tenant, pool=pool, nominal_gpus=nominal, borrowing_limit_gpus=borrowing
            )


def quota_for(cluster_slug: str, tenant_slug: str, plan: PoolPlan) -> tuple[int, int]:
    """(nominal, may borrow) in GPUs."""
    known = TRIAL_QUOTAS if cluster_slug == TRIAL_CLUSTER else {}
    return known.get((tenant_slug, plan.slug), (plan.total_gpus // 2, 0))


def words_of(cluster: Cluster, pools: Iterable[PoolPlan]) -> list[str]:
    """Lines that announce what a first start on a real cluster will create."""
    lines = [
        f"On the cluster of {cluster.kubeconfig_path} Berth will use, and change nothing but its own objects:"
    ]
    for plan in pools:
        flavors = ", ".join(flavor.slug for flavor in plan.flavors)
        gpus = f"{plan.total_gpus} GPUs, " if plan.resource_name else ""
        lines.append(f"  pool {plan.slug}: {gpus}flavors {flavors}")
    spaces = ", ".join(f"berth-{slug}" for slug in TENANTS)
    return [
        *lines,
        f"  namespaces {spaces}, made when the first workspace of a tenant starts",
        f"  image {image_reference()}, which the cluster must be able to pull",
        *without_isolation(cluster),
    ]


def without_isolation(cluster: Cluster) -> list[str]:
    """Lines that announce a start without isolation; none if tenants are isolated."""
    if not cluster.without_isolation:
        return []
    return [
        f"  no isolation of tenants from each other: unknown are {names(missing(cluster))}.",
        "  To isolate them, fill those in under /admin/, Clusters, and choose “Require isolation”",
    ]
