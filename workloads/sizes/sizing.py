"""Resolve a request (a flavor, a pool and amounts, or "a GPU with at least …") to a pool and whole units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.models import Tenant
from quotas import sharing
from quotas.estimates import Estimate, Estimator, possible_claim
from quotas.models import Claim, Flavor, Pool
from quotas.pools.needs import GpuAsked, fitting, price
from quotas.pools.nodes import PoolNodes
from quotas.sharing import Portion
from workloads.models import Workload

DEFAULT_CPU_MILLICORES = 2000
DEFAULT_MEMORY_MIB = 4096
PORTION = asdict(Portion())  # names of the fields and their defaults


@dataclass(frozen=True, kw_only=True)
class SizeAsked:
    """Requested size. One of flavor, pool or gpu chooses the place; the other fields set amounts."""

    flavor: str | None = None
    pool: str | None = None
    gpu: GpuAsked | None = None
    gpus: Fraction | None = None
    gpu_memory_mib: int | None = None
    cpu_millicores: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, kw_only=True)
class Size:
    """Size to launch. CPU and memory are the limits; the pod requests them divided by the pool's overcommit."""

    pool: Pool
    flavor: Flavor | None
    portion: Portion
    cpu_millicores: int
    memory_mib: int

    @classmethod
    def of(cls, row: Workload) -> Size:
        return cls(
            pool=row.pool,
            flavor=row.flavor,
            portion=portion_of(row),
            cpu_millicores=row.cpu_millicores,
            memory_mib=row.memory_mib,
        )

    @classmethod
    def of_flavor(cls, flavor: Flavor) -> Size:
        return cls(
            pool=flavor.pool,
            flavor=flavor,
            portion=sharing.of(flavor.pool).of_units(flavor.pool, flavor.units),
            cpu_millicores=flavor.cpu_millicores,
            memory_mib=flavor.memory_mib,
        )

    @classmethod
    def kept(cls, kept: dict[str, Any]) -> Size | None:
        """Read what `to_keep` wrote; None if that pool is gone."""
        pool = Pool.objects.select_related("cluster").filter(slug=kept["pool"]).first()
        if pool is None:
            return None
        return cls(
            pool=pool,
            flavor=pool.flavors.filter(slug=kept["flavor"]).first(),
            portion=Portion(**{name: kept.get(name, default) for name, default in PORTION.items()}),
            cpu_millicores=kept["cpu_millicores"],
            memory_mib=kept["memory_mib"],
        )

    def to_keep(self) -> dict[str, Any]:
        """Return the size for a row, with the figures that people see."""
        return self.fields | {
            "pool": self.pool.slug,
            "flavor": self.flavor.slug if self.flavor else None,
            "gpus": round(float(self.pool.gpus(self.units)), 4),
        }

    def asked_by(
        self,
        tenant: Tenant,
        user: Any = None,
        max_runtime_minutes: int | None = None,
        holder: UUID | None = None,
        nodes: int = 1,
        priority: int = 0,
    ) -> Claim:
        """Request for this size to the queue, on so many nodes. `holder`: the workload whose volumes it must follow."""
        return possible_claim(
            tenant=tenant,
            user=user,
            pool=self.pool,
            portion=self.portion,
            cpu_millicores=self.requested_cpu_millicores,
            memory_mib=self.requested_memory_mib,
            max_runtime_minutes=max_runtime_minutes,
            holder_id=holder,
            nodes=nodes,
            priority=priority,
        )

    def asked(self) -> SizeAsked:
        """Request for the same size again."""
        is_flavor = self.flavor is not None and self.flavor.units == self.units
        return SizeAsked(
            flavor=self.flavor.slug if self.flavor and is_flavor else None,
            pool=None if is_flavor else self.pool.slug,
            gpus=None if is_flavor else self.gpus_asked,
            gpu_memory_mib=None if is_flavor or not self.portion.cards else self.gpu_memory_mib,
            cpu_millicores=self.cpu_millicores,
            memory_mib=self.memory_mib,
        )

    def describe(self) -> str:
        """Text for people: the flavor's name, or the figures if there is no flavor."""
        if self.flavor is not None:
            return self.flavor.name
        gpus = f"{float(self.pool.gpus(self.units)):g} GPU"
        if self.portion.cards:
            gpus += f" ({(self.gpu_memory_mib or 0) / 1024:g} GiB)"
        return f"{self.pool.name}, {gpus}, {self.cpu_millicores / 1000:g} CPU, {self.memory_mib / 1024:g} GiB"

    @property
    def fields(self) -> dict[str, Any]:
        """Values of a workload's fields."""
        return {
            "pool": self.pool,
            "flavor": self.flavor,
            **asdict(self.portion),
            "cpu_millicores": self.cpu_millicores,
            "memory_mib": self.memory_mib,
        }

    @property
    def gpus_asked(self) -> Fraction:
        """Number of GPUs from which `resolve` makes this very portion again."""
        if self.portion.card_cores:
            return Fraction(self.portion.cards * self.portion.card_cores, 100)
        return self.pool.gpus(self.units)

    @property
    def units(self) -> int:
        return self.portion.units

    @property
    def gpu_memory_mib(self) -> int | None:
        return sharing.of(self.pool).memory_mib(self.pool, self.portion)

    @property
    def requested_cpu_millicores(self) -> int:
        return ceil(self.cpu_millicores / self.pool.cpu_overcommit)

    @property
    def requested_memory_mib(self) -> int:
        return ceil(self.memory_mib / self.pool.memory_overcommit)


def portion_of(row: Workload) -> Portion:
    return Portion(**{name: getattr(row, name) for name in PORTION})


def resolve(tenant: Tenant, asked: SizeAsked) -> Size:
    """Return the size, or raise Invalid with the field that does not fit."""
    named = [name for name in ("flavor", "pool", "gpu") if getattr(asked, name) is not None]
    if len(named) != 1:
        raise _invalid("flavor", _("Give exactly one of flavor, pool or gpu."))
    if asked.flavor is not None:
        return _from_flavor(asked)
    if asked.pool is not None:
        pool = Pool.objects.select_related("cluster").filter(slug=asked.pool).first()
        if pool is None:
            raise _invalid(
                "pool", _("There is no pool “%(slug)s”. See the list of pools.") % {"slug": asked.pool}
            )
        return _in_pool(pool, asked)
    return _find(tenant, asked)


def _from_flavor(asked: SizeAsked) -> Size:
    flavor = Flavor.objects.select_related("pool__cluster").filter(slug=asked.flavor).first()
    if flavor is None:
        raise _invalid(
            "flavor", _("There is no flavor “%(slug)s”. See the list of flavors.") % {"slug": asked.flavor}
        )
    for field in ("gpus", "gpu_memory_mib"):
        if getattr(asked, field) is not None:
            raise _invalid(field, _("A flavor says this already. Give a pool instead to choose it yourself."))
    size = Size.of_flavor(flavor)
    return replace(
        size,
        cpu_millicores=asked.cpu_millicores or size.cpu_millicores,
        memory_mib=asked.memory_mib or size.memory_mib,
    )


def _in_pool(pool: Pool, asked: SizeAsked) -> Size:
    return Size(
        pool=pool,
        flavor=None,
        portion=sharing.of(pool).portion(pool, asked.gpus, asked.gpu_memory_mib),
        cpu_millicores=asked.cpu_millicores or DEFAULT_CPU_MILLICORES,
        memory_mib=asked.memory_mib or DEFAULT_MEMORY_MIB,
    )


@dataclass(frozen=True)
class Found:
    """A pool that has such a GPU, with the forecast for the launch there."""

    size: Size
    outlook: Estimate

    @property
    def price(self) -> Fraction:
        """Weighted GPU-hours per hour."""
        return price(self.size.pool, self.size.units)

    @property
    def price_shown(self) -> float | int:
        return round(float(self.price), 2) if self.price.denominator > 1 else int(self.price)

    @property
    def isolation(self) -> str:
        return str(sharing.of(self.size.pool).isolation)


def found(tenant: Tenant, asked: SizeAsked, nodes: Mapping[UUID, PoolNodes] | None = None) -> list[Found]:
    """Pools with such a GPU that the tenant may use, cheapest first; at the same price a pool that starts now comes
    first, then the smaller GPU.

    Pools that refuse the other amounts asked for come last: their reason says more than that there is no such GPU.
    """
    sizes = []
    for pool in fitting(Pool.objects.select_related("cluster").filter(is_open=True), asked.gpu or GpuAsked()):
        try:
            sizes.append(_in_pool(pool, with_memory(pool, asked)))
        except Invalid:
            continue
    looks, asks = Estimator(nodes=nodes), [size.asked_by(tenant) for size in sizes]
    looks.look_at((), beside=asks)
    every = [Found(size, looks.estimate(one)) for size, one in zip(sizes, asks, strict=True)]
    usable = [one for one in every if one.outlook["admissible"] or not _has_no_share(one.outlook)]
    return sorted(usable, key=_order)


def with_memory(pool: Pool, asked: SizeAsked) -> SizeAsked:
    """Ask for no more memory than is needed, where GPUs are cut by memory."""
    if asked.gpu is None or asked.gpus is not None or not sharing.of(pool).by_memory:
        return asked
    return replace(asked, gpu_memory_mib=asked.gpu_memory_mib or asked.gpu.min_memory_mib)


def _find(tenant: Tenant, asked: SizeAsked) -> Size:
    """Return the cheapest size that is good enough and that the tenant may use. Raise Invalid if there is none."""
    if first := next(iter(found(tenant, asked)), None):
        return first.size
    text = _("No pool that your team can use has such a GPU. Request less, or see the pools.")
    raise _invalid("gpu", text)


def _order(one: Found) -> tuple[bool, Fraction, bool, int, str]:
    pool, view = one.size.pool, one.outlook
    return not view["admissible"], one.price, not view["starts_now"], pool.gpu_memory_mib or 0, pool.slug


def _has_no_share(view: Estimate) -> bool:
    return view["reasons"][0]["code"] == "quota_exceeded"


def _invalid(field: str, text: str) -> Invalid:
    return Invalid("invalid_size", text, _("Correct the named field."), fields={field: [text]})
