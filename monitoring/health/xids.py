"""Meaning of the driver's errors (Xids) for a GPU and for people on it.

From NVIDIA's catalogue, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (read in November 2026),
by its immediate action: RESTART_APP and IGNORE leave the GPU in use; RESET_GPU, RESTART_BM, RESTART_VM and the
workflows of broken memory and NVLink take it out. Three exceptions: 109 counts as a program's, as in NVIDIA's own
device plugin; 61 is a fault of GPUs older than the table; Xids without an action are out where their description says
that the GPU stands still or lost data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["application", "gpu", "link", "driver"]


@dataclass(frozen=True)
class Meaning:
    """Meaning of an Xid. `code`: its sentence (clusters/causes); without a code only admins see it, as a number."""

    kind: Kind
    takes_out: bool
    code: str = ""


PROGRAM = Meaning("application", takes_out=False, code="gpu_program_fault")
# An error that reached one program only: the GPU goes on, and skips the place after a reset.
CONTAINED = Meaning("gpu", takes_out=False, code="gpu_repair_due")
MEMORY = Meaning("gpu", takes_out=True, code="gpu_memory_damaged")
STUCK = Meaning("gpu", takes_out=True, code="gpu_stuck")
LOST = Meaning("gpu", takes_out=True, code="gpu_lost")
LINK = Meaning("link", takes_out=True, code="gpu_link_fault")
# Repaired by itself, or a note of the driver.
NOTED = Meaning("driver", takes_out=False)
NOTED_OF_GPU = Meaning("gpu", takes_out=False)
NOTED_OF_LINK = Meaning("link", takes_out=False)

_BY_MEANING: Mapping[Meaning, Iterable[int]] = {
    PROGRAM: (
        8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89,
        96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 109, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137,
        139, 141,
    ),
    CONTAINED: (94,),
    MEMORY: (48, 64, 95, 140, 156, 171, 172),
    STUCK: (46, 54, 61, 62, 110, 119, 120, 143, 151, 158, 169),
    LOST: (79, 167),
    LINK: (74, 136, 144, 145, 146, 147, 148, 149, 150, 155),
    # 63: rows were remapped, which samples show; 92: many corrected errors; 157: nothing to be done.
    NOTED_OF_GPU: (63, 92, 93, 157, 160, 161, 162, 163, 164, 165, 168),
    NOTED_OF_LINK: (108, 121, 166, 170),
    # 154: another recovery action, which samples show if the driver reports it.
    NOTED: (14, 37, 38, 44, 66, 67, 78, 106, 107, 142, 152, 153, 154, 159),
}  # fmt: skip

KNOWN: Mapping[int, Meaning] = {xid: meaning for meaning, xids in _BY_MEANING.items() for xid in xids}


def meaning_of(xid: int) -> Meaning:
    """Return the meaning. An Xid that the catalogue calls unused, or does not have, takes nothing out."""
    return KNOWN.get(xid, NOTED)
