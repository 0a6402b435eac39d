"""A GPU that the device plugin gives out several times."""

from __future__ import annotations

from django.utils.translation import gettext as _

from quotas.models import Pool

from .by_units import ByUnits


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
