"""Use of CPU and memory by containers: from /proc for their processes, or simulated."""

import contextlib
import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
WAVE_SECONDS, FILLING_SECONDS = 600.0, 300.0
IDLE_CORES, SMALL_BYTES = 0.05, 128 * 2**20
"""What a played container has that asks for nothing."""


@dataclass(frozen=True)
class Usage:
    cpu_seconds: float
    """Since the container began."""
    memory_bytes: int


NOTHING = Usage(0.0, 0)


@dataclass(frozen=True)
class _Process:
    parent: int
    cpu_seconds: float
    """Its own, and that of its children that have ended."""
    resident_bytes: int


def of_families(roots: Collection[int]) -> dict[int, Usage]:
    """Return the use of each of these processes with all its descendants."""
    found = _processes()
    family = {root: root for root in roots if root in found}
    while more := {
        pid: family[process.parent]
        for pid, process in found.items()
        if pid not in family and process.parent in family
    }:
        family |= more
    totals = dict.fromkeys(roots, NOTHING)
    for pid, root in family.items():
        so_far, process = totals[root], found[pid]
        totals[root] = Usage(
            so_far.cpu_seconds + process.cpu_seconds, so_far.memory_bytes + process.resident_bytes
        )
    return totals


def _processes() -> dict[int, _Process]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):  # the process has just ended
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ticks = sum(int(fields[n]) for n in range(11, 15))
                found[int(entry.name)] = _Process(int(fields[1]), ticks / _TICKS, int(fields[21]) * _PAGE)
    return found


def played(age_seconds: float, cpu_cores: float, memory_bytes: int, phase: float) -> Usage:
    """Return a simulated use: CPU in waves from 10 to 70 % of the cores, memory filling up to half in some minutes.

    `phase`, from 0 to 1, is the point of the wave where the container begins.
    """
    turn, start = math.tau / WAVE_SECONDS, math.tau * phase
    swing = (math.cos(start) - math.cos(turn * age_seconds + start)) / turn
    filled = 0.5 - 0.3 * math.exp(-age_seconds / FILLING_SECONDS)
    cpu_seconds = (cpu_cores or IDLE_CORES) * (0.4 * age_seconds + 0.3 * swing)
    return Usage(cpu_seconds, int((memory_bytes or SMALL_BYTES) * filled))
