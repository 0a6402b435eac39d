"""Use cases of the first-run guide, made of those of the rooms below: each step in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import members
from accounts.access import Actor, visible_tenants
from accounts.errors import Conflict
from accounts.models import Tenant
from accounts.trail import audit
from clusters.isolation.deciding import set_without_isolation
from clusters.models import Cluster
from quotas import passes
from quotas.models import Flavor, Pool, Quota
from quotas.pools.founding import make_pool
from quotas.pools.planning import PoolPlan
from workloads.images import catalogue
from workloads.models import Image
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.launch.suggestions import MOST_TRIED, friendly_name, sample
from workspaces.models import Workspace


def require_admin(actor: Actor) -> None:
    actor.require_admin()


@transaction.atomic
def isolate(actor: Actor, cluster: Cluster, *, without: bool) -> None:
    """Save the networks that an admin entered, or run the cluster without isolation."""
    require_admin(actor)
    fields = ("pod_cidrs", "service_cidrs", "api_cidrs")
    cluster.save(update_fields=fields)
    audit.record(actor, "cluster.change", target=cluster, data={"fields": list(fields)})
    if without:
        set_without_isolation(actor, cluster, without=True)


@transaction.atomic
def make_pools(actor: Actor, cluster: Cluster, plans: Sequence[PoolPlan]) -> list[Pool]:
    require_admin(actor)
    pools = [make_pool(cluster, plan) for plan in plans]
    for pool in pools:
        audit.record(actor, "pool.create", target=pool)
    passes.want_everywhere()
    return pools


@transaction.atomic
def make_tenant(
    actor: Actor,
    *,
    name: str,
    slug: str,
    people: Sequence[tuple[str, str]],
    quotas: Sequence[tuple[Pool, int]],
) -> Tenant:
    """Create the tenant, its quotas and its members. Raise a Refusal, and write nothing, if one is refused."""
    require_admin(actor)
    tenant = members.create_tenant(actor, slug=slug, name=name)
    for pool, gpus in quotas:
        quota = Quota.objects.create(tenant=tenant, pool=pool, nominal_gpus=gpus)
        audit.record(actor, "quota.create", target=quota, tenant=tenant, data={"name": str(quota)})
    for username, role in people:
        members.set_role(actor, tenant, username, role)
    return tenant


@transaction.atomic
def add_image(actor: Actor, image: Image) -> None:
    """Save an image. Clusters without one that serves files take it for that, too: images of workspaces have Python."""
    require_admin(actor)
    image.save(force_insert=True)
    audit.record(actor, "image.create", target=image)
    Cluster.objects.filter(files_image="").update(files_image=image.reference, files_uid=image.uid)


def try_it(actor: Actor) -> Workspace:
    """Launch what a first visit suggests; if nothing starts now, the smallest size, whose page says why it waits."""
    require_admin(actor)
    tenants = list(visible_tenants(actor).filter(memberships__isnull=False).distinct()[:MOST_TRIED])
    image = catalogue().first()
    flavors = Flavor.objects.filter(pool__is_open=True).order_by("units", "cpu_millicores")
    found = sample(actor, tenants) or {}
    flavor, tenant = found.get("flavor") or flavors.first(), found.get("tenant") or next(iter(tenants), None)
    if image is None or flavor is None or tenant is None:
        raise Conflict(
            "nothing_to_launch",
            _("There is no image, no size in an open pool, or no tenant with people yet."),
            _("Finish the steps above."),
        )
    size = SizeAsked(flavor=flavor.slug)
    name = friendly_name(actor)
    return launch(actor, LaunchSpec(tenant=tenant.slug, name=name, image=image.slug, size=size))
