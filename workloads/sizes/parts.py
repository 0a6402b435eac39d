"""Shares of one GPU to choose from in the launch form, beside a pool's ready-made sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from django.utils.translation import gettext as _

from quotas import sharing
from quotas.models import Flavor, Pool
from quotas.sharing import Portion

from .sizing import DEFAULT_CPU_MILLICORES, DEFAULT_MEMORY_MIB, SizeAsked

# CPU and memory that come with a share are rounded up to these.
CPU_STEP_MILLICORES, MEMORY_STEP_MIB = 500, 512


@dataclass(frozen=True)
class Part:
    """Share of one GPU, with CPU and memory in proportion."""

    pool: Pool
    units: int
    gpus: Fraction
    gpu_memory_mib: int | None
    cpu_millicores: int
    memory_mib: int

    @property
    def value(self) -> str:
        return part_value(self.pool, self.units)

    @property
    def name(self) -> str:
        if self.gpus == 1:
            return _("A whole GPU")
        return _("%(part)s of a GPU") % {"part": f"{self.gpus.numerator}/{self.gpus.denominator}"}

    def size(self) -> SizeAsked:
        return SizeAsked(
            pool=self.pool.slug,
            gpus=self.gpus,
            cpu_millicores=self.cpu_millicores,
            memory_mib=self.memory_mib,
        )


def part_value(pool: Pool, units: int) -> str:
    """Value of the form's flavor field for a share. A flavor's slug has no slash."""
    return f"{pool.slug}/{units}"


def is_part(pool: Pool, portion: Portion) -> bool:
    """Return True if the form offers this portion of GPUs."""
    strategy = sharing.of(pool)
    return portion.units in strategy.parts(pool) and portion == strategy.of_units(pool, portion.units)


def parts_of(pool: Pool, flavors: Sequence[Flavor]) -> list[Part]:
    """Shares that no flavor has already, with CPU and memory in proportion to the pool's smallest flavor."""
    strategy = sharing.of(pool)
    smallest = min((flavor for flavor in flavors if flavor.units), key=lambda f: f.units, default=None)
    there = {flavor.units for flavor in flavors}
    parts = []
    for units in strategy.parts(pool):
        if units in there:
            continue
        times = Fraction(units, smallest.units) if smallest else pool.gpus(units)
        cpu = smallest.cpu_millicores if smallest else DEFAULT_CPU_MILLICORES
        memory = smallest.memory_mib if smallest else DEFAULT_MEMORY_MIB
        parts.append(
            Part(
                pool,
                units,
                pool.gpus(units),
                strategy.memory_mib(pool, strategy.of_units(pool, units)),
                rounded_up(cpu * times, CPU_STEP_MILLICORES),
                rounded_up(memory * times, MEMORY_STEP_MIB),
            )
        )
    return parts


def rounded_up(amount: Fraction, step: int) -> int:
    return int(-(-amount // step) * step)
