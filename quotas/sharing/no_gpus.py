"""A pool without GPUs."""

from __future__ import annotations

from fractions import Fraction

from django.utils.translation import gettext as _

from quotas.models import Pool

from .strategy import NO_GPU, Offer, PodParts, Portion, Strategy, refused


class NoGpus(Strategy):
    isolation = ""
    neighbours = ""

    def offer(self, pool: Pool) -> Offer:
        return Offer(Fraction(0), Fraction(0))

    def offer_words(self, pool: Pool) -> str:
        return _("This pool has no GPUs. Ask for 0, or choose another pool.")

    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        if gpus:
            raise refused("gpus", self.offer_words(pool))
        return Portion()

    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        return PodParts(environment=NO_GPU)

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        return {}
