"""MPS: one NVIDIA service per GPU runs the kernels of all its users at once, and holds each to a share.

Programs talk to the service through files in /dev/shm, which must be the service's own: the device plugin mounts it.
"""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from quotas.models import Pool

from .replicas import Replicas
from .strategy import HARD_CAP, PodParts, Portion


class Mps(Replicas):
    isolation = HARD_CAP
    strategy_label = "mps"
    neighbours = _(
        "NVIDIA's service holds everybody on the GPU to a share of its memory and compute. A program that fails"
        " badly on the GPU may end yours too, and others there can read what you put into /dev/shm."
    )

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        return replace(super().pod(pool, portion), brings_shm=True)
