"""MIG: a GPU cut into instances by the hardware. A CUDA program uses one instance, however many its pod has."""

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from quotas.models import Pool

from .by_units import ByUnits
from .strategy import HARDWARE_SLICE

WHOLE = "nvidia.com/gpu"
# Media extensions (+me, as a resource .me or -me) are profiles of their own.
OF_A_PROFILE = re.compile(r"nvidia\.com/mig-([1-9]g\.[0-9]+gb(?:[.-]me)?)(?:\.shared)?")


class Mig(ByUnits):
    isolation = HARDWARE_SLICE
    owns_gpus = is_instance = True
    neighbours = gettext_lazy(
        "A part of a GPU, cut off by the hardware. Its memory and compute are yours alone, and a crash beside you"
        " stays there."
    )

    def most_units(self, pool: Pool) -> int | None:
        return 1

    def product_labels(self, pool: Pool) -> tuple[str, ...]:
        profile = pool.mig_profile.replace("+", ".")  # no label has a plus: 1g.10gb.me
        return tuple(f"{pool.match_product}-MIG-{profile}{shared}" for shared in ("", "-SHARED"))

    def faults(self, pool: Pool) -> dict[str, str]:
        """Return faults. With strategy `mixed` the resource names the profile; with `single` only the pool does."""
        if pool.resource_name == WHOLE:
            text = _("Say how the GPUs are cut, as 1g.10gb: instances are announced as plain GPUs here.")
            return {} if pool.mig_profile else {"mig_profile": text}
        named = OF_A_PROFILE.fullmatch(pool.resource_name)
        if named is None:
            return {
                "resource_name": _("MIG instances are announced as nvidia.com/mig-1g.10gb or nvidia.com/gpu.")
            }
        if pool.mig_profile and pool.mig_profile != named[1]:
            return {"mig_profile": _("The resource is that of %(profile)s.") % {"profile": named[1]}}
        return {}

    def why_no_more(self) -> str:
        return _("A program sees one MIG instance only: for more, choose a pool of larger instances.")
