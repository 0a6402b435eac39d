"""GPU use of a pod, second by second, by a life that is described in words. Pure.

| life | use of the GPU |
| --- | --- |
| `none` | nothing runs on the GPU |
| `idle` | a process has the GPU open and computes nothing |
| `steady 70` | 70 % busy, all the time |
| `training` | data loads first, then epochs of two minutes: busy, with a dip for the evaluation |
| `ramp 10` | from 0 to 100 % within 10 minutes, then 100 % |
| `waves 5` | up and down, once in 5 minutes |
| `leak 2` | busy, and 2 GiB of memory more each minute, until the GPU is full and the process restarts |
| `by-cpu` | as busy as the pod's own processes keep a core; nothing runs while they are quiet |

A pod names its life in the annotation `devcluster.local/gpu-life`, else its node's entry in the node file does
(`gpus: {life: …}`).
"""

import math
from dataclasses import dataclass

ANNOTATION = "devcluster.local/gpu-life"
BY_CPU = "by-cpu"
CONTEXT_MIB = 450
"""What a process takes that has opened a GPU and nothing more."""
_QUIET_CORES = 0.2
_MOST = 10_000
_EPOCH_SECONDS, _DIP_SECONDS, _LOADING_SECONDS = 120.0, 12.0, 15.0
_DEFAULTS = {"none": 0, "idle": 0, "steady": 70, "training": 0, "ramp": 10, "waves": 5, "leak": 2, BY_CPU: 0}


@dataclass(frozen=True)
class Use:
    """Use of one GPU, or of a share: how busy (0 to 1), and how much of its memory."""

    busy: float
    memory_mib: float


@dataclass(frozen=True)
class Life:
    kind: str
    amount: float

    @classmethod
    def read(cls, text: str) -> "Life":
        """Parse a description; raise ValueError if it is unknown."""
        kind, _, told = text.strip().partition(" ")
        if kind not in _DEFAULTS:
            raise ValueError(f"life: {text}: not one of {', '.join(_DEFAULTS)}")
        amount = float(told.removesuffix("%")) if told else _DEFAULTS[kind]
        if told and not 0 < amount <= _MOST:
            raise ValueError(f"life: {text}: the number is above 0 and at most {_MOST}")
        return cls(kind, amount)

    def at(self, seconds: float, memory_mib: float, cores: float, seed: float) -> Use | None:
        """Return the use of a share so many seconds after the start; None if nothing runs. `seed` makes pods differ."""
        trembling = 0.03 * math.sin(seconds / 3.1 + seed) + 0.02 * math.sin(seconds / 1.3 + 2 * seed)
        if self.kind == "none" or (self.kind == BY_CPU and cores < _QUIET_CORES):
            return None
        busy, share = self._level(seconds, memory_mib, cores)
        busy = min(max(busy + trembling, 0.0), 1.0) if busy else 0.0
        return Use(busy, min(CONTEXT_MIB + share * max(memory_mib - CONTEXT_MIB, 0), memory_mib))

    def _level(self, seconds: float, memory_mib: float, cores: float) -> tuple[float, float]:
        """Return how busy the GPU is and how full its memory, both from 0 to 1."""
        if self.kind == "steady":
            return self.amount / 100, 0.6
        if self.kind == "training":
            return _training(seconds)
        if self.kind == "ramp":
            level = min(seconds / (60 * self.amount), 1.0)
            return level, 0.8 * level
        if self.kind == "waves":
            return 0.5 - 0.45 * math.cos(2 * math.pi * seconds / (60 * self.amount)), 0.5
        if self.kind == "leak":
            full_seconds = max(60 * memory_mib / (1024 * self.amount), 1.0)
            return 0.6, seconds % full_seconds / full_seconds
        return (min(cores, 1.0), 0.35) if self.kind == BY_CPU else (0.0, 0.0)


def _training(seconds: float) -> tuple[float, float]:
    if seconds < _LOADING_SECONDS:
        return 0.05, 0.75 * seconds / _LOADING_SECONDS
    in_epoch = (seconds - _LOADING_SECONDS) % _EPOCH_SECONDS
    return (0.25 if in_epoch > _EPOCH_SECONDS - _DIP_SECONDS else 0.93), 0.75
