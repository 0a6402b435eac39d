"""The data of provisioned volumes: one file each that holds an ext4 file system of the asked size.

As root it is mounted by a loop device in devcluster's own mount namespace, so that the size is a real limit and
nothing stays mounted once devcluster is gone. Otherwise a volume is a folder without a limit.
"""

import os
import shutil
import subprocess
from pathlib import Path

from devcluster.quantity import whole

SMALLEST_BYTES = 2 * 2**20
_JOURNAL_FROM_BYTES = 64 * 2**20
IMAGE_UID = 1000
"""Files are kept under this uid on disk; each pod sees them as its own through an id-mapped mount."""


class Disks:
    def __init__(self, state: Path):
        self._files, self._mounts = state / "volumes", state / "mounts"
        self._root = os.geteuid() == 0
        self._mounted: set[str] = set()
        for folder in (self._files, self._mounts):
            folder.mkdir(exist_ok=True, mode=0o700)

    def _file(self, volume: str) -> Path:
        return self._files / f"{volume}.img"

    def mount(self, volume: str, size: str) -> Path:
        """Where the volume's files are; made and mounted if they are not yet."""
        if not self._root:
            folder = self._files / volume
            folder.mkdir(exist_ok=True, mode=0o700)
            return folder
        target = self._mounts / volume
        if volume in self._mounted:
            return target / "data"
        file = self._file(volume)
        if not file.exists():
            _format(file, max(whole(size), SMALLEST_BYTES))
        target.mkdir(exist_ok=True, mode=0o700)
        _run("mount", "-o", "loop,nosuid,nodev", str(file), str(target))
        self._mounted.add(volume)
        data = target / "data"
        if not data.exists():
            data.mkdir(mode=0o2775)
            os.chown(data, IMAGE_UID, IMAGE_UID)
            data.chmod(0o2775)
        self.grow(volume, size)
        return data

    def grow(self, volume: str, size: str) -> None:
        """A larger file, loop device and file system; while mounted, too."""
        file = self._file(volume)
        if not self._root or not file.exists():
            return  # made at its first mount, in its new size
        if file.stat().st_size < whole(size):
            os.truncate(file, whole(size))
        if volume not in self._mounted:
            return  # the next mount grows the file system to the file
        device = subprocess.run(
            ["findmnt", "-no", "SOURCE", str(self._mounts / volume)], capture_output=True, text=True, check=True
        ).stdout.strip()
        _run("losetup", "-c", device)
        _run("resize2fs", device)

    def discard(self, volume: str) -> None:
        """Delete the data for good: its claim and volume were deleted under the policy Delete."""
        if volume in self._mounted:
            subprocess.run(["umount", "-l", str(self._mounts / volume)], check=False, capture_output=True)
            self._mounted.discard(volume)
        self._file(volume).unlink(missing_ok=True)
        shutil.rmtree(self._files / volume, ignore_errors=True)

    def close(self) -> None:
        for volume in self._mounted:
            subprocess.run(["umount", "-l", str(self._mounts / volume)], check=False, capture_output=True)
        self._mounted.clear()


def _format(file: Path, size_bytes: int) -> None:
    """Under another name until it is whole: a file of the right name is never formatted."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("wb") as out:
        out.truncate(size_bytes)
    journal = ["-J", "size=4"] if size_bytes >= _JOURNAL_FROM_BYTES else ["-O", "^has_journal"]
    lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    _run("mkfs.ext4", "-q", "-F", "-m", "0", *journal, "-E", lazy, str(unfinished))
    unfinished.rename(file)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    if done.returncode:
        raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()}")
