"""GPUs that the device plugin gives out several times: in turns, or through NVIDIA's service MPS."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.models import Pool

from .by_units import ByUnits
from .strategy import HARD_CAP, NO_ISOLATION, PodParts, Portion


class Replicas(ByUnits):
    def parts(self, pool: Pool) -> list[int]:
        """Return sizes below a full GPU: so many replicas may lie on several GPUs, and others may be on them."""
        return [units for units in super().parts(pool) if units < pool.units_per_gpu]

    def product_labels(self, pool: Pool) -> tuple[str, ...]:
        return (f"{pool.match_product}-SHARED",)

    def faults(self, pool: Pool) -> dict[str, str]:
        if pool.units_per_gpu > 1:
            return {}
        return {"units_per_gpu": _("Into how many is a GPU cut? 2 or more, as the device plugin is set.")}


class TimeSlicing(Replicas):
    isolation = NO_ISOLATION
    strategy_label = "time-slicing"
    neighbours = gettext_lazy(
        "You take turns with others on the GPU. Its memory is not divided: who takes too much makes others fail."
        " You are slower while others compute, and a crash may end your program too."
    )


class Mps(Replicas):
    """An NVIDIA service per GPU runs the kernels of all its users at once, and holds each to a share.

    Programs talk to it through files in /dev/shm, which must be the service's own: the device plugin mounts it.
    """

    isolation = HARD_CAP
    strategy_label = "mps"
    neighbours = gettext_lazy(
        "NVIDIA's service holds everybody on the GPU to a share of its memory and compute. A program that fails"
        " badly on the GPU may end yours too, and others there can read what you put into /dev/shm."
    )

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        return replace(super().pod(pool, portion), brings_shm=True)
