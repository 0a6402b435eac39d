"""From what is asked (a flavor, a pool and figures, or "a GPU with at least …") to a pool and whole units."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.models import Tenant
from quotas import sharing
from quotas.models import Flavor, Pool
from quotas.outlook import outlook
from quotas.sharing import Portion

if TYPE_CHECKING:
    from .models import Workspace

DEFAULT_CPU_MILLICORES = 2000
DEFAULT_MEMORY_MIB = 4096
PORTION = asdict(Portion())  # its names, and what they are where nobody said


@dataclass(frozen=True, kw_only=True)
class GpuAsked:
    """Find me a GPU with at least this."""

    min_memory_mib: int | None = None
    min_compute_capability: str | None = None
    ecc: bool | None = None
    product: str | None = None


@dataclass(frozen=True, kw_only=True)
class SizeAsked:
    """One of flavor, pool or gpu says where; the others how much."""

    flavor: str | None = None
    pool: str | None = None
    gpu: GpuAsked | None = None
    gpus: Fraction | None = None
    gpu_memory_mib: int | None = None
    cpu_millicores: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is launched. CPU and memory are the limits; the pod requests them divided by the pool's overcommit."""

    pool: Pool
    flavor: Flavor | None
    portion: Portion
    cpu_millicores: int
    memory_mib: int

    @classmethod
    def of(cls, workspace: Workspace) -> Size:
        return cls(
            pool=workspace.pool,
            flavor=workspace.flavor,
            portion=portion_of(workspace),
            cpu_millicores=workspace.cpu_millicores,
            memory_mib=workspace.memory_mib,
        )

    @classmethod
    def of_next(cls, workspace: Workspace) -> Size:
        """What its next start asks for."""
        return (workspace.next_size and cls.kept(workspace.next_size)) or cls.of(workspace)

    @classmethod
    def kept(cls, kept: dict[str, Any]) -> Size | None:
        """As `to_keep` wrote it; None when that pool is gone."""
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
        """For a row; with the figures that people are shown."""
        return {
            "pool": self.pool.slug,
            "flavor": self.flavor.slug if self.flavor else None,
            **asdict(self.portion),
            "gpus": round(float(self.pool.gpus(self.units)), 4),
            "cpu_millicores": self.cpu_millicores,
            "memory_mib": self.memory_mib,
        }

    def asked(self) -> SizeAsked:
        """The same size, to be asked for anew."""
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
        """As people read it: the flavor's name, or the figures where there is none."""
        if self.flavor is not None:
            return self.flavor.name
        gpus = float(self.pool.gpus(self.units))
        return f"{self.pool.name}, {gpus:g} GPU, {self.cpu_millicores / 1000:g} CPU, {self.memory_mib / 1024:g} GiB"

    @property
    def gpus_asked(self) -> Fraction:
        """As `resolve` would make this very portion of it again."""
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


def portion_of(workspace: Workspace) -> Portion:
    return Portion(**{name: getattr(workspace, name) for name in PORTION})


def resolve(tenant: Tenant, asked: SizeAsked) -> Size:
    """The size, or Invalid with the field that does not fit."""
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
    return Size(
        pool=flavor.pool,
        flavor=flavor,
        portion=sharing.of(flavor.pool).of_units(flavor.pool, flavor.units),
        cpu_millicores=asked.cpu_millicores or flavor.cpu_millicores,
        memory_mib=asked.memory_mib or flavor.memory_mib,
    )


def _in_pool(pool: Pool, asked: SizeAsked) -> Size:
    return Size(
        pool=pool,
        flavor=None,
        portion=sharing.of(pool).portion(pool, asked.gpus, asked.gpu_memory_mib),
        cpu_millicores=asked.cpu_millicores or DEFAULT_CPU_MILLICORES,
        memory_mib=asked.memory_mib or DEFAULT_MEMORY_MIB,
    )


def _find(tenant: Tenant, asked: SizeAsked) -> Size:
    """The smallest GPU that is good enough and that the tenant may use; one that starts now comes first.

    One that is refused for what is asked beside it comes last: its reason says more than that there is none.
    """
    wanted = asked.gpu or GpuAsked()
    sizes: list[Size] = []
    for pool in Pool.objects.select_related("cluster").exclude(resource_name=""):
        if fits(pool, wanted):
            try:
                sizes.append(_in_pool(pool, asked))
            except Invalid:
                continue
    ranked = []
    for size in sizes:
        view = outlook(
            tenant=tenant,
            pool=size.pool,
            portion=size.portion,
            cpu_millicores=size.requested_cpu_millicores,
            memory_mib=size.requested_memory_mib,
        )
        if view["admissible"] or view["reasons"][0]["code"] != "quota_exceeded":
            order = (
                not view["admissible"],
                not view["starts_now"],
                size.pool.gpu_memory_mib or 0,
                size.pool.slug,
            )
            ranked.append((order, size))
    if not ranked:
        raise _invalid(
            "gpu", _("No pool that your tenant may use has such a GPU. Ask for less, or see the pools.")
        )
    return min(ranked, key=itemgetter(0))[1]


def fits(pool: Pool, wanted: GpuAsked) -> bool:
    """Whether a unit of the pool is at least what is wanted."""
    memory_mib = pool.unit_memory_mib or pool.gpu_memory_mib or 0
    return (
        memory_mib >= (wanted.min_memory_mib or 0)
        and _version(pool.compute_capability) >= _version(wanted.min_compute_capability or "")
        and (wanted.ecc is None or pool.ecc == wanted.ecc)
        and (wanted.product is None or wanted.product.lower() in pool.gpu_product.lower())
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _invalid(field: str, text: str) -> Invalid:
    return Invalid("invalid_size", text, _("Correct the named field."), fields={field: [text]})
