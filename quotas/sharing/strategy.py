"""Interface of the ways of sharing a GPU. Plain values: pools in, words and pieces of a pod out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Invalid
from quotas.models import Pool, Sharing

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

DEDICATED = gettext_lazy("dedicated")
HARDWARE_SLICE = gettext_lazy("hardware slice")
HARD_CAP = gettext_lazy("hard cap")
SOFT_CAP = gettext_lazy("soft cap")
NO_ISOLATION = gettext_lazy("none")

# For runtimes that show all GPUs to a container that requests none.
NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "void"}


@dataclass(frozen=True)
class Portion:
    """Share of one run: whole units; for GPUs cut by memory and cores, also the cards and the amount of each."""

    units: int = 0
    cards: int = 0
    card_memory_mib: int | None = None
    card_cores: int | None = None


@dataclass(frozen=True)
class PodParts:
    """Parts of a pod that request its portion. Resources are both request and limit."""

    resources: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    # The device plugin mounts its own /dev/shm; a volume of the pod would hide it.
    brings_shm: bool = False


class Strategy(ABC):
    """A way of sharing a GPU."""

    isolation: StrOrPromise
    # Effects of others on the same GPU: on your memory and compute, and by a crash.
    neighbours: StrOrPromise
    # GPU memory may be chosen by itself: a unit is an amount, and no device.
    by_memory = False
    # A run has its units alone, so what is measured there is its own.
    owns_gpus = False
    # A unit is an instance that the hardware cut off: a device of its own to programs and in figures.
    is_instance = False
    # The node lists its cards, and each pod what it was given of which: room is counted card by card.
    by_card = False
    # Value of the nodes' label `nvidia.com/gpu.sharing-strategy`; empty: that label says nothing of it.
    strategy_label = ""
    # Annotation for the GPUs that a pod must not get; empty: nothing can steer which it gets.
    avoid_annotation = ""

    @property
    def counts_cards(self) -> bool:
        """True if the nodes' label `nvidia.com/gpu.count` counts cards, so that a missing card is known."""
        return bool(self.strategy_label)

    @abstractmethod
    def gives(self, pool: Pool) -> str:
        """Return a sentence on what can be requested; refusals show it too."""

    def parts(self, pool: Pool) -> list[int]:
        """Return shares of one GPU to choose from, in units; none where GPUs are whole."""
        return []

    @abstractmethod
    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        """Return the nearest portion for so many GPUs and MiB in total; raise Invalid if there is none."""

    @abstractmethod
    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        """Return how a pod requests the portion."""

    def product_labels(self, pool: Pool) -> tuple[str, ...]:
        """Return what nodes may call the pool's product where the resource's name does not say how it is cut."""
        return (pool.match_product,)

    def avoiding(self, uuids: Collection[str]) -> dict[str, str]:
        """Return annotations of a pod that keep it off these GPUs."""
        return {self.avoid_annotation: ",".join(uuids)} if uuids and self.avoid_annotation else {}

    def of_units(self, pool: Pool, units: int) -> Portion:
        """Return the portion of a flavor, whose size is in units."""
        return Portion(units)

    def memory_mib(self, pool: Pool, portion: Portion) -> int | None:
        """Return the GPU memory in total, in MiB; None if unknown."""
        each = pool.unit_memory_mib or pool.gpu_memory_mib
        return each * portion.units if each and portion.units else None

    def faults(self, pool: Pool) -> dict[str, str]:
        """Return what an admin must correct before this way of sharing can work: field to sentence."""
        return {}

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        """Return keys of a ResourceQuota, each with the most that so many GPUs can come to."""
        return {f"requests.{pool.resource_name}": gpus * pool.units_per_gpu}


class NoGpus(Strategy):
    """A pool without GPUs."""

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


class ByHundredths(Strategy):
    """GPUs cut by memory and compute: a unit is a hundredth of both."""

    isolation = SOFT_CAP
    by_memory = True
    # Resource that the cluster must announce, and the sentence for a pool of another one.
    resource: str
    wrong_resource: StrOrPromise

    def parts(self, pool: Pool) -> list[int]:
        return [10, 25, 50, 75, 100]

    def faults(self, pool: Pool) -> dict[str, str]:
        found = {}
        if pool.units_per_gpu != 100:
            found["units_per_gpu"] = _("Here a unit is a hundredth of a GPU: 100.")
        if not pool.gpu_memory_mib:
            found["gpu_memory_mib"] = _("Fill this in: a share of a GPU is a share of its memory, too.")
        if pool.resource_name != self.resource:
            found["resource_name"] = str(self.wrong_resource)
        return found

    @staticmethod
    def memory_of_a_gpu(pool: Pool) -> int:
        """Return the memory in MiB; raise Invalid if nobody has said it."""
        if not pool.gpu_memory_mib:
            raise memory_unknown()
        return pool.gpu_memory_mib


def refused(name: str, text: str) -> Invalid:
    return Invalid("invalid_size", text, _("Correct the named field."), fields={name: [text]})


def memory_unknown() -> Invalid:
    return refused(
        "gpu_memory_mib", _("Nobody has said how much memory a GPU of this pool has. Tell an admin.")
    )
