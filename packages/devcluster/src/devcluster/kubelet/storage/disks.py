"""Data of provisioned volumes: a file each, with an ext4 file system of the requested size.

Root mounts the file by a loop device in devcluster's own mount namespace, so that the size is a real limit and
nothing stays mounted once devcluster is gone. Without root a volume is a folder without a limit. Snapshots and clones
are copies of the file, taken while its file system is frozen; where the machine's file system can share blocks
between files, a copy costs nothing.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from devcluster.values.quantity import whole

SMALLEST_BYTES = 2 * 2**20
_JOURNAL_FROM_BYTES = 64 * 2**20
_ROUNDING_BYTES = 2**20
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_FREEZE, _THAW = 0xC0045877, 0xC0045878  # FIFREEZE, FITHAW of linux/fs.h
IMAGE_UID = 1000
"""Files are kept under this uid on disk; each pod sees them as its own through an id-mapped mount."""


class Disks:
    """Disks of all volumes. Slow steps run in a thread, one at a time for each volume."""

    def __init__(self, state: Path):
        self._files, self._mounts = state / "volumes", state / "mounts"
        self._root = os.geteuid() == 0
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.mounted: set[str] = set()
        for folder in (self._files, self._mounts):
            folder.mkdir(exist_ok=True, mode=0o700)
        for unfinished in self._files.glob("*.new"):
            _remove(unfinished)

    def _file(self, volume: str) -> Path:
        """Return the file that holds the volume; without root, its folder."""
        return self._files / (f"{volume}.img" if self._root else volume)

    @contextlib.asynccontextmanager
    async def _alone(self, volume: str) -> AsyncIterator[None]:
        """Keep other steps off the volume; then unmount it if its last user left in the meantime."""
        async with self._locks[volume]:
            yield
        self._leave(volume)

    async def mount(self, volume: str, size: str, user: str) -> Path:
        """Mount a volume for `user` (a pod's uid), creating it if needed. Return the folder of its files."""
        if not self._root:
            self._file(volume).mkdir(exist_ok=True, mode=0o700)
            return self._file(volume)
        self._users[volume].add(user)
        data = self._mounts / volume / "data"
        async with self._alone(volume):
            if volume not in self.mounted:
                await asyncio.to_thread(self._attach, volume, size)
                self.mounted.add(volume)
            if not data.exists():
                data.mkdir()
                os.chown(data, IMAGE_UID, IMAGE_UID)
                data.chmod(0o2775)
        return data

    def _attach(self, volume: str, size: str) -> None:
        file, target = self._file(volume), self._mounts / volume
        if not file.exists():
            make_file_system(file, max(whole(size), SMALLEST_BYTES))
        self._grow(volume, size)
        target.mkdir(exist_ok=True, mode=0o700)
        run("mount", "-o", "loop,nosuid,nodev", str(file), str(target))
        with contextlib.suppress(OSError), _opened(target) as folder:
            fcntl.ioctl(folder, _THAW, 0)  # devcluster was killed while it made a copy

    def use(self, volume: str) -> tuple[int, int] | None:
        """Return used bytes and size of a mounted volume's file system. None: not mounted, or it has no limit."""
        if volume not in self.mounted:
            return None
        seen = os.statvfs(self._mounts / volume)
        return (seen.f_blocks - seen.f_bfree) * seen.f_frsize, seen.f_blocks * seen.f_frsize

    def release(self, user: str) -> None:
        """Unmount the volumes that no other user has."""
        for volume in [v for v, users in self._users.items() if user in users]:
            self._users[volume].discard(user)
            self._leave(volume)

    def _leave(self, volume: str) -> None:
        if self._users.get(volume) or self._locks[volume].locked():
            return
        self._users.pop(volume, None)
        if volume in self.mounted:
            self.mounted.discard(volume)
            unmount(self._mounts / volume)

    async def grow(self, volume: str, size: str) -> bool:
        """Enlarge file and file system. Return False if the kernel allows that only while no pod has it mounted."""
        async with self._alone(volume):
            return await asyncio.to_thread(self._grow, volume, size)

    def _grow(self, volume: str, size: str) -> bool:
        file = self._file(volume)
        if not self._root or not file.exists() or _file_system_bytes(file) >= whole(size) - _ROUNDING_BYTES:
            return True  # a volume that does not exist yet is created in its new size
        if file.stat().st_size < whole(size):
            os.truncate(file, whole(size))
        if volume not in self.mounted:
            subprocess.run(["e2fsck", "-f", "-p", str(file)], check=False, capture_output=True, env=_ENV)
            run("resize2fs", str(file))
            return True
        find = ["findmnt", "-no", "SOURCE", str(self._mounts / volume)]
        device = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
        try:
            run("losetup", "-c", device)
            run("resize2fs", device)
        except OSError:  # CAP_SYS_RESOURCE is needed to grow a mounted file system
            return False
        return True

    async def copy(self, source: str, target: str) -> None:
        """Copy the source as it is at one moment; do nothing if it was never created."""
        async with self._alone(source):
            if self._file(source).exists():
                await asyncio.to_thread(self._copy, source, target)

    def _copy(self, source: str, target: str) -> None:
        unfinished = self._files / f"{target}.new"
        _remove(unfinished)
        with self._frozen(source):
            options = ["-a", "--reflink=auto", "--sparse=always"]
            run("cp", *options, str(self._file(source)), str(unfinished))
        unfinished.rename(self._file(target))

    @contextlib.contextmanager
    def _frozen(self, volume: str) -> Iterator[None]:
        if volume not in self.mounted:
            yield
            return
        with _opened(self._mounts / volume) as folder:
            fcntl.ioctl(folder, _FREEZE, 0)
            try:
                yield
            finally:
                fcntl.ioctl(folder, _THAW, 0)

    async def fill(self, volume: str, full: bool) -> None:
        """Fill the free space of a mounted volume by a file that its pods do not see, or free it again."""
        async with self._alone(volume):
            if volume in self.mounted:
                await asyncio.to_thread(_fill, self._mounts / volume / "full", full)

    async def format(self, volume: str) -> None:
        """Make the volume's file system anew: all files are lost."""
        async with self._alone(volume):
            if not self._root:
                _remove(self._file(volume))
                self._file(volume).mkdir(mode=0o700)
            elif self._file(volume).exists():
                if volume in self.mounted:
                    self.mounted.discard(volume)
                    unmount(self._mounts / volume)
                await asyncio.to_thread(
                    make_file_system, self._file(volume), self._file(volume).stat().st_size
                )

    async def discard(self, volume: str) -> None:
        """Delete the data for good: the claim and the volume were deleted under the policy Delete."""
        self._users.pop(volume, None)
        self._leave(volume)
        async with self._alone(volume):
            _remove(self._file(volume))
        self._locks.pop(volume, None)

    def close(self) -> None:
        for volume in self.mounted:
            unmount(self._mounts / volume)


def _file_system_bytes(file: Path) -> int:
    """Return the size in the superblock: count times size of blocks."""
    with file.open("rb") as source:
        source.seek(1024)
        head = source.read(32)
    (blocks,) = struct.unpack_from("<I", head, 4)
    (shift,) = struct.unpack_from("<I", head, 24)
    return int(blocks) << (10 + int(shift))


def make_file_system(file: Path, size_bytes: int) -> None:
    """Make the file under another name until it is complete: a file of the final name is never formatted."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("wb") as out:
        out.truncate(size_bytes)
    journal = ["-J", "size=4"] if size_bytes >= _JOURNAL_FROM_BYTES else ["-O", "^has_journal"]
    lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-m", "0", *journal, "-E", lazy, str(unfinished))
    unfinished.rename(file)


def _fill(file: Path, full: bool) -> None:
    if not full:
        file.unlink(missing_ok=True)
        return
    with file.open("ab") as out:
        part = os.statvfs(file).f_bavail * os.statvfs(file).f_frsize
        while part >= 1024:
            try:
                os.posix_fallocate(out.fileno(), out.seek(0, os.SEEK_END), part)
            except OSError:  # the file's metadata needs space too
                part //= 2


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def unmount(target: Path) -> None:
    subprocess.run(["umount", "-l", str(target)], check=False, capture_output=True)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_ENV)
    if done.returncode:
        raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()}")
