"""Steps of the first-run guide, as the rows say: which are done, and what there is of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Model
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Membership, Tenant
from clusters.isolation.deciding import may_launch
from clusters.models import Cluster
from quotas.models import Pool, Quota
from workloads.images import catalogue
from workloads.models import Image
from workspaces.models import Event

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MOST_NAMED = 6
CLUSTER, ISOLATION, POOLS, TENANT, IMAGE, TRY = "cluster", "isolation", "pools", "tenant", "image", "try"
TITLES: dict[str, StrOrPromise] = {
    CLUSTER: gettext_lazy("Connect a cluster"),
    ISOLATION: gettext_lazy("Isolate tenants"),
    POOLS: gettext_lazy("Create pools and sizes"),
    TENANT: gettext_lazy("Create a tenant with people"),
    IMAGE: gettext_lazy("Add an image"),
    TRY: gettext_lazy("Try it"),
}


@dataclass(frozen=True)
class Step:
    """A step of the guide. `there`: what exists of it, in words; `address`: where the admin changes that."""

    slug: str
    is_done: bool
    there: str = ""
    address: str = ""

    @property
    def title(self) -> StrOrPromise:
        return TITLES[self.slug]


def is_complete() -> bool:
    """Return True once any workspace has become ready: whoever got so far needs no guide."""
    return Event.objects.filter(code="ready").exists()


def steps() -> list[Step]:
    return list(_steps())


def current(found: Sequence[Step]) -> Step:
    """Return the first step that is not done, or else the last one."""
    return next((step for step in found if not step.is_done), found[-1])


def _steps() -> Iterator[Step]:
    clusters = list(Cluster.objects.all())
    yield _step(CLUSTER, clusters, Cluster)
    if closed := [cluster for cluster in clusters if not may_launch(cluster)]:
        yield Step(ISOLATION, False, _named(closed), _address(Cluster))
    yield _step(POOLS, Pool.objects.filter(is_open=True, flavors__isnull=False).distinct(), Pool)
    with_people = Tenant.objects.filter(pk__in=Membership.objects.values("tenant"))
    if Pool.objects.exclude(resource_name="").exists():
        with_people = with_people.filter(pk__in=Quota.objects.filter(nominal_gpus__gt=0).values("tenant"))
    yield _step(TENANT, with_people, Tenant)
    yield _step(IMAGE, catalogue(), Image)
    yield Step(TRY, is_complete())


def _step(slug: str, rows: Iterable[Any], model: type[Model]) -> Step:
    found = list(rows)
    return Step(slug, bool(found), _named(found), _address(model))


def _address(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def _named(rows: Sequence[Any]) -> str:
    names = [str(row) for row in rows[:MOST_NAMED]]
    more = [f"+{len(rows) - MOST_NAMED}"] if len(rows) > MOST_NAMED else []
    return _(", ").join([*names, *more])
