"""What every way of sharing a GPU has to say. Plain values; pools in, words and pieces of a pod out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Invalid
from quotas.models import Pool

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

DEDICATED = gettext_lazy("dedicated")
HARDWARE_SLICE = gettext_lazy("hardware slice")
HARD_CAP = gettext_lazy("hard cap")
SOFT_CAP = gettext_lazy("soft cap")
NO_ISOLATION = gettext_lazy("none")

# A runtime that shows all GPUs to whoever asks for none is told so.
NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "void"}
# Where any hundredth of a GPU can be had, these are offered.
HUNDREDTHS = (10, 25, 50, 75, 100)
# 0.14 for a seventh is meant as a seventh.
ROUNDING = Fraction(1, 50)


@dataclass(frozen=True)
class Portion:
    """What one run gets: whole units; and where GPUs are cut by memory and cores, how many, and so much of each."""

    units: int = 0
    cards: int = 0
    card_memory_mib: int | None = None
    card_cores: int | None = None


@dataclass(frozen=True)
class PodParts:
    """What a pod must say to get its portion. Resources are both requested and the limit."""

    resources: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    # The device plugin mounts its own /dev/shm, which one of the pod's would hide.
    brings_shm: bool = False


class Strategy(ABC):
    """One way of sharing."""

    isolation: StrOrPromise
    # What those beside you on the GPU can do to you: to your memory, your compute, and by a crash.
    neighbours: StrOrPromise
    # GPU memory may be chosen by itself.
    by_memory = False

    @abstractmethod
    def gives(self, pool: Pool) -> str:
        """What can be asked for, as a sentence; also what a refusal says."""

    def parts(self, pool: Pool) -> list[int]:
        """Shares of one GPU to choose from, in units; none where GPUs are whole."""
        return []

    @abstractmethod
    def portion(self, pool: Pool, gpus: Fraction | None, memory_mib: int | None) -> Portion:
        """What comes nearest to so many GPUs and so much GPU memory in all; Invalid where nothing does."""

    @abstractmethod
    def pod(self, pool: Pool, portion: Portion) -> PodParts:
        """How its pod asks for it."""

    def of_units(self, pool: Pool, units: int) -> Portion:
        """As a flavor says it."""
        return Portion(units)

    def memory_mib(self, pool: Pool, portion: Portion) -> int | None:
        """GPU memory in all; None where nobody has said."""
        each = pool.unit_memory_mib or pool.gpu_memory_mib
        return each * portion.units if each and portion.units else None

    def faults(self, pool: Pool) -> dict[str, str]:
        """What an admin has to correct before this way of sharing can work: field to sentence."""
        return {}

    def ceiling(self, pool: Pool, gpus: int) -> dict[str, int]:
        """Keys of a ResourceQuota, and the most that so many GPUs can come to."""
        return {f"requests.{pool.resource_name}": gpus * pool.units_per_gpu}


def refused(name: str, text: str) -> Invalid:
    return Invalid("invalid_size", text, _("Correct the named field."), fields={name: [text]})


def memory_unknown() -> Invalid:
    return refused(
        "gpu_memory_mib", _("Nobody has said how much memory a GPU of this pool has. Tell an admin.")
    )


def of_a_gpu(part: Fraction) -> str:
    """1/7, 3/4 …"""
    return f"{part.numerator}/{part.denominator}"


def hundredths_faults(pool: Pool) -> dict[str, str]:
    """Where a GPU is cut by memory and compute."""
    found = {}
    if pool.units_per_gpu != 100:
        found["units_per_gpu"] = _("Here a unit is a hundredth of a GPU: 100.")
    if not pool.gpu_memory_mib:
        found["gpu_memory_mib"] = _("Fill this in: a share of a GPU is a share of its memory, too.")
    return found
