"""HAMi: a share of the memory and cores of one or more GPUs, enforced by a library within the container.

Its scheduler reads the request from the container's limits alone; the same names as annotations do nothing.
Kubernetes counts only how many GPUs a pod uses, so admission counts card by card (`quotas/pools/cards.py`).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.models import Pool

from .strategy import ByHundredths, PodParts, Portion, refused

SCHEDULER = "hami-scheduler"
MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
# HAMi fills GPUs in the order in which admission counts them: the fullest that fits, so that whole ones stay free.
POLICIES = {"hami.io/gpu-scheduler-policy": "binpack", "hami.io/node-scheduler-policy": "binpack"}


class Hami(ByHundredths):
    by_card = True
    resource = "nvidia.com/gpu"
    wrong_resource = gettext_lazy("HAMi announces its GPUs as nvidia.com/gpu.")
    avoid_annotation = "nvidia.com/nouse-gpuuuid"
    neighbours = gettext_lazy(
        "A library in each container holds it to its share of memory and compute. Programs that go round the"
        " library are not held, and a crash of the GPU ends everything on it."
    )

    def gives(self, pool: Pool) -> str:
        return _("This pool gives any share of a GPU from 1/100, and as much of its memory as you say.")

    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        """Return a portion of as many GPUs as both need, with the same share of each."""
        whole_mib = self.memory_of_a_gpu(pool)
        by_memory = Fraction(memory_mib or 0, whole_mib)
        share = gpus if gpus is not None else by_memory or Fraction(1)
        if share <= 0:
            raise refused("gpus", self.gives(pool))
        cards = ceil(max(share, by_memory))
        cores = ceil(100 * share / cards)
        each_mib = ceil((memory_mib if memory_mib is not None else share * whole_mib) / cards)
        if cores >= 100:  # HAMi gives that GPU to nobody else
            each_mib, cores = whole_mib, 100
        percent = max(cores, ceil(Fraction(100 * each_mib, whole_mib)))
        return Portion(cards * percent, cards, each_mib, cores)

    def of_units(self, pool: Pool, units: int) -> Portion:
        return self.portion(pool, pool.gpus(units), None) if units else Portion()

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        return PodParts(
            {
                pool.resource_name: str(portion.cards),
                MEMORY: str(portion.card_memory_mib),
                CORES: str(portion.card_cores),
            },
            POLICIES,
            SCHEDULER,
        )

    def memory_mib(self, pool: Pool, portion: Portion) -> int | None:
        return portion.cards * portion.card_memory_mib if portion.card_memory_mib else None

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        """Return limits: Kubernetes counts GPUs that pods use, at most one per percent; HAMi counts `limits`."""
        most = {f"requests.{pool.resource_name}": 100 * gpus, f"limits.{CORES}": 100 * gpus}
        return most | ({f"limits.{MEMORY}": gpus * pool.gpu_memory_mib} if pool.gpu_memory_mib else {})
