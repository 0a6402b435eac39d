"""A disk that can be filled to its last byte. Only root may mount one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=711", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill the disk to its last byte, once. Space that others free meanwhile stays free."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        filler.unlink()
