"""What each of the driver's errors (Xids) means for a GPU and for who is on it.

After NVIDIA's catalogue, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (read in November 2026),
by what it says to do at once: RESTART_APP and IGNORE leave the GPU in use, RESET_GPU, RESTART_BM, RESTART_VM and the
workflows of broken memory and NVLink take it out. It is not followed to the letter in three places: 109 counts as a
program's, as NVIDIA's own device plugin has it; 61 is a fault of GPUs older than its table; and those that it has
without an action are out where their description says that the GPU stands still or lost data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["application", "gpu", "link", "driver"]


@dataclass(frozen=True)
class Meaning:
    """`code`: its sentence (clusters/causes); without one only admins read of it, as the number that it is."""

    kind: Kind
    takes_out: bool
    code: str = ""


PROGRAM = Meaning("application", takes_out=False, code="gpu_program_fault")
# An error that reached one program alone: the GPU goes on, and leaves the place out once it was reset.
CONTAINED = Meaning("gpu", takes_out=False, code="gpu_repair_due")
MEMORY = Meaning("gpu", takes_out=True, code="gpu_memory_damaged")
STUCK = Meaning("gpu", takes_out=True, code="gpu_stuck")
LOST = Meaning("gpu", takes_out=True, code="gpu_lost")
LINK = Meaning("link", takes_out=True, code="gpu_link_fault")
# Mended by itself, or a note of the driver's.
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
    # 63: rows were remapped, which the samples tell; 92: many errors that were corrected; 157: nothing is to be done.
    NOTED_OF_GPU: (63, 92, 93, 157, 160, 161, 162, 163, 164, 165, 168),
    NOTED_OF_LINK: (108, 121, 166, 170),
    # 154: another recovery action, which the samples tell where the driver does.
    NOTED: (14, 37, 38, 44, 66, 67, 78, 106, 107, 142, 152, 153, 154, 159),
}  # fmt: skip

KNOWN: Mapping[int, Meaning] = {xid: meaning for meaning, xids in _BY_MEANING.items() for xid in xids}


def meaning_of(xid: int) -> Meaning:
    """One that the catalogue calls unused, or does not have, takes nothing out."""
    return KNOWN.get(xid, NOTED)
