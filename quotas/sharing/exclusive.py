"""Whole GPUs, or whole devices of any vendor: the pool's resource name is the only setting."""

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.models import Pool

from .by_units import ByUnits
from .strategy import DEDICATED


class Exclusive(ByUnits):
    isolation = DEDICATED
    owns_gpus = True
    strategy_label = "none"
    neighbours = _(
        "The GPU is yours alone. Nobody else uses its memory or compute, and no crash reaches you."
    )

    def faults(self, pool: Pool) -> dict[str, str]:
        if pool.units_per_gpu == 1:
            return {}
        return {"units_per_gpu": gettext("Whole GPUs are not cut: 1. Or choose how they are shared.")}
