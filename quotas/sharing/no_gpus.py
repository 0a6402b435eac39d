"""A pool without GPUs."""

from __future__ import annotations

from fractions import Fraction

from django.utils.translation import gettext as _

from quotas.models import Pool, Sharing

from .strategy import NO_GPU, PodParts, Portion, Strategy, refused


class NoGpus(Strategy):
    isolation = ""
    neighbours = ""

    def gives(self, pool: Pool) -> str:
        return _("This pool has no GPUs. Ask for 0, or choose another pool.")

    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        if gpus:
            raise refused("gpus", self.gives(pool))
        return Portion()

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        return PodParts(environment=NO_GPU)

    def faults(self, pool: Pool) -> dict[str, str]:
        text = _("A pool without GPUs has none. Name its resource, or leave this empty.")
        found = {field: text for field in ("driver_path", "mig_profile") if getattr(pool, field)}
        if pool.sharing != Sharing.EXCLUSIVE:
            found["sharing"] = _("A pool without GPUs shares none. Name its resource, or choose whole GPUs.")
        return found

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        return {}
