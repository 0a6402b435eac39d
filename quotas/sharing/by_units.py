"""GPUs that are given out in whole units of one resource: cards (here), instances or replicas."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.text import in_gib
from quotas.models import Pool

from .strategy import DEDICATED, NO_GPU, PodParts, Portion, Strategy, memory_unknown, refused

NVIDIA = "nvidia.com/"
MOST_PARTS = 8
# 0.14 is accepted as a seventh.
ROUNDING = Fraction(1, 50)


class ByUnits(Strategy):
    def most_units(self, pool: Pool) -> int | None:
        """Return the most units of one run; None: as many as a node has."""
        return 1 if pool.one_unit_each else None

    def why_no_more(self) -> str:
        return _("Each gets one part at most.")

    def parts(self, pool: Pool) -> list[int]:
        """Return all sizes if they are few; else those that divide a GPU evenly."""
        if pool.units_per_gpu == 1:
            return []
        most = self.most_units(pool) or pool.units_per_gpu
        few = pool.units_per_gpu <= MOST_PARTS
        return [units for units in range(1, most + 1) if few or pool.units_per_gpu % units == 0]

    def gives(self, pool: Pool) -> str:
        if pool.units_per_gpu == 1:
            words = _("This pool gives whole GPUs.")
        else:
            words = _("This pool gives %(part)s of a GPU at a time.") % {"part": f"1/{pool.units_per_gpu}"}
        return words if self.most_units(pool) is None else f"{words} {self.why_no_more()}"

    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        each_mib = pool.unit_memory_mib or pool.gpu_memory_mib
        if memory_mib and not each_mib:
            raise memory_unknown()
        by_memory = ceil(memory_mib / each_mib) if memory_mib and each_mib else 1
        units = self._units(pool, gpus) if gpus is not None else by_memory
        most = self.most_units(pool)
        if by_memory > units:
            text = _("That much of this pool has %(amount)s of GPU memory. Request more GPUs.")
            raise refused("gpu_memory_mib", text % {"amount": in_gib((each_mib or 0) * units)})
        if most is not None and units > most:
            raise refused("gpus" if gpus is not None else "gpu_memory_mib", self.gives(pool))
        return Portion(units)

    def _units(self, pool: Pool, gpus: Fraction) -> int:
        exact = gpus * pool.units_per_gpu
        units = round(exact)
        if units < 1 or abs(exact - units) > ROUNDING * units:
            hint = _("Ask for a multiple.")
            raise refused("gpus", f"{self.gives(pool)} {hint}")
        return units

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        environment = {} if pool.resource_name.startswith(NVIDIA) else NO_GPU
        return PodParts({pool.resource_name: str(portion.units)}, environment=environment)


class Exclusive(ByUnits):
    """Whole GPUs, or whole devices of any vendor: the pool's resource name is the only setting."""

    isolation = DEDICATED
    owns_gpus = True
    strategy_label = "none"
    neighbours = gettext_lazy(
        "The GPU is yours alone. Nobody else uses its memory or compute, and no crash reaches you."
    )

    def faults(self, pool: Pool) -> dict[str, str]:
        if pool.units_per_gpu == 1:
            return {}
        return {"units_per_gpu": _("Whole GPUs are not cut: 1. Or choose how they are shared.")}
