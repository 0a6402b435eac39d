"""MIG: a GPU cut into instances by the hardware. A CUDA program uses one instance, however many its pod has."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.models import Pool

from .by_units import ByUnits
from .strategy import HARDWARE_SLICE


class Mig(ByUnits):
    isolation = HARDWARE_SLICE
    neighbours = gettext_lazy(
        "A part of a GPU, cut off by the hardware. Its memory and compute are yours alone, and a crash beside you"
        " stays there."
    )

    def most_units(self, pool: Pool) -> int | None:
        return 1

    def why_no_more(self) -> str:
        return _("A program sees one MIG instance only: for more, choose a pool of larger instances.")
