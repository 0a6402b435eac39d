"""Tencent's gpu-manager, for clusters that still have it: below a GPU any hundredth, above it whole GPUs.

Its resources: `tencent.com/vcuda-core`, 100 to a GPU, and `tencent.com/vcuda-memory` in blocks of 256 MiB. It has not
been maintained since CUDA 11.5: Berth makes its manifests, and does not read which GPU it chose.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.models import Pool

from .strategy import ByHundredths, PodParts, Portion, refused

MEMORY = "tencent.com/vcuda-memory"
BLOCK_MIB = 256
# Requests are whole for the device plugin; this limit holds the compute to them.
CORE_LIMIT = "tencent.com/vcuda-core-limit"


class GpuManager(ByHundredths):
    resource = "tencent.com/vcuda-core"
    wrong_resource = gettext_lazy("gpu-manager announces hundredths of GPUs as tencent.com/vcuda-core.")
    neighbours = gettext_lazy(
        "A library in each container holds it to its share of memory and compute. Programs that go round the"
        " library are not held, and a crash of the GPU ends everything on it. CUDA is at most 11.5 here."
    )

    def gives(self, pool: Pool) -> str:
        return _("This pool gives any share of one GPU from 1/100, or whole GPUs.")

    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        """Return one share for both memory and compute: the larger of the two."""
        units = ceil(100 * gpus) if gpus is not None else 0 if memory_mib else 100
        if gpus is not None and (units < 1 or (units > 100 and units % 100)):
            raise refused("gpus", self.gives(pool))
        return Portion(max(units, self._units_with(pool, memory_mib) if memory_mib else 0))

    def _units_with(self, pool: Pool, memory_mib: int) -> int:
        whole_mib = self.memory_of_a_gpu(pool)
        units = ceil(Fraction(ceil(memory_mib / BLOCK_MIB) * BLOCK_MIB * 100, whole_mib))
        return units if units <= 100 else ceil(units / 100) * 100

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        core = str(portion.units)
        memory = {MEMORY: str(self._blocks(pool, portion.units))} if pool.gpu_memory_mib else {}
        limit = {CORE_LIMIT: core} if portion.units < 100 else {}
        return PodParts({pool.resource_name: core} | memory, limit)

    def memory_mib(self, pool: Pool, portion: Portion) -> int | None:
        return self._blocks(pool, portion.units) * BLOCK_MIB or None

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        memory = {f"requests.{MEMORY}": self._blocks(pool, 100 * gpus)} if pool.gpu_memory_mib else {}
        return super().ceiling(pool, gpus) | memory

    @staticmethod
    def _blocks(pool: Pool, units: int) -> int:
        """Return the memory blocks, rounded down: a hundred hundredths never exceed a GPU."""
        return units * (pool.gpu_memory_mib or 0) // (100 * BLOCK_MIB)
