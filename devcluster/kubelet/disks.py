"""The data of provisioned volumes: one file each that holds an ext4 file system of the asked size.

As root it is mounted by a loop device in devcluster's own mount namespace, so that the size is a real limit and
nothing stays mounted once devcluster is gone. Otherwise a volume is a folder without a limit.
"""

import os
import shutil
import struct
import subprocess
from pathlib import Path

from devcluster.quantity import whole

SMALLEST_BYTES = 2 * 2**20
_JOURNAL_FROM_BYTES = 64 * 2**20
_ROUNDING_BYTES = 2**20
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
IMAGE_UID = 1000
"""Files are kept under this uid on disk; each pod sees them as its own through an id-mapped mount."""


class Disks:
    def __init__(self, state: Path):
        self._files, self._mounts = state / "volumes", state / "mounts"
        self._root = os.geteuid() == 0
        self._users: dict[str, set[str]] = {}
        for folder in (self._files, self._mounts):
            folder.mkdir(exist_ok=True, mode=0o700)

    def _file(self, volume: str) -> Path:
        return self._files / f"{volume}.img"

    def mount(self, volume: str, size: str, user: str) -> Path:
        """Where the volume's files are, for as long as `user` (a pod's uid) has it; made if it is not there yet."""
        if not self._root:
            folder = self._files / volume
            folder.mkdir(exist_ok=True, mode=0o700)
            return folder
        data = self._mounts / volume / "data"
        if not self._users.get(volume):
            self._attach(volume, size)
            if not data.exists():
                data.mkdir()
                os.chown(data, IMAGE_UID, IMAGE_UID)
                data.chmod(0o2775)
        self._users.setdefault(volume, set()).add(user)
        return data

    def _attach(self, volume: str, size: str) -> None:
        file, target = self._file(volume), self._mounts / volume
        if not file.exists():
            _format(file, max(whole(size), SMALLEST_BYTES))
        self.grow(volume, size)
        target.mkdir(exist_ok=True, mode=0o700)
        _run("mount", "-o", "loop,nosuid,nodev", str(file), str(target))

    def release(self, user: str) -> None:
        """Unmount what only this user had."""
        for volume, users in list(self._users.items()):
            users.discard(user)
            if not users:
                self._detach(volume)

    def _detach(self, volume: str) -> None:
        del self._users[volume]
        subprocess.run(["umount", "-l", str(self._mounts / volume)], check=False, capture_output=True)

    def grow(self, volume: str, size: str) -> bool:
        """Make file and file system larger; False where the kernel allows that only while no pod has it."""
        file = self._file(volume)
        if not self._root or not file.exists() or _file_system_bytes(file) >= whole(size) - _ROUNDING_BYTES:
            return True  # what is not there yet is made in its new size
        if file.stat().st_size < whole(size):
            os.truncate(file, whole(size))
        if not self._users.get(volume):
            subprocess.run(["e2fsck", "-f", "-p", str(file)], check=False, capture_output=True, env=_ENV)
            _run("resize2fs", str(file))
            return True
        find = ["findmnt", "-no", "SOURCE", str(self._mounts / volume)]
        device = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
        try:
            _run("losetup", "-c", device)
            _run("resize2fs", device)
        except OSError:  # growing a mounted file system takes CAP_SYS_RESOURCE
            return False
        return True

    def discard(self, volume: str) -> None:
        """Delete the data for good: its claim and volume were deleted under the policy Delete."""
        if volume in self._users:
            self._detach(volume)
        self._file(volume).unlink(missing_ok=True)
        shutil.rmtree(self._files / volume, ignore_errors=True)

    def close(self) -> None:
        for volume in list(self._users):
            self._detach(volume)


def _file_system_bytes(file: Path) -> int:
    """From the superblock: count and size of blocks."""
    with file.open("rb") as source:
        source.seek(1024)
        head = source.read(32)
    (blocks,) = struct.unpack_from("<I", head, 4)
    (shift,) = struct.unpack_from("<I", head, 24)
    return int(blocks) << (10 + int(shift))


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
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_ENV)
    if done.returncode:
        raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()}")
