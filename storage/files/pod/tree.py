"""Files below one folder, for the program beside this one: read, received in pieces, renamed, deleted.

No path leads out of the folder: each part is opened below the one before it, and no symbolic link is followed. An
upload goes to a hidden part file beside its target, which takes the target's name when it is whole and on the disk.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from heapq import nsmallest
from typing import Any, NamedTuple

PIECE = 256 * 1024
MOST_LISTED = 500
LONGEST_PATH, LONGEST_NAME, DEEPEST = 4000, 255, 200
DELETING_SECONDS = 8.0  # one request's part of a large folder
PART = ".berth-upload-"
PART_KEPT_SECONDS = 7 * 24 * 3600
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)")


class Refused(Exception):
    """An answer other than success: its status, a code, and facts."""

    def __init__(self, status: int, code: str, **facts: Any) -> None:
        super().__init__(code)
        self.status, self.facts = status, dict(facts, code=code)


# --- Paths


def parts_of(path: str) -> list[str]:
    """Return the names in a path below the folder. Refuse what no name can be."""
    parts = [part for part in path.split("/") if part]
    encoded = path.encode("utf-8", "surrogateescape")
    if len(encoded) > LONGEST_PATH or len(parts) > DEEPEST or "\0" in path:
        raise Refused(422, "bad_path")
    for part in parts:
        if part in (".", "..") or len(part.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
            raise Refused(422, "bad_path")
        if part.startswith(PART):
            raise Refused(422, "bad_path")
    return parts


class Place(NamedTuple):
    """An open folder, and a name in it."""

    folder: int
    name: str


@contextmanager
def opened_folder(root: int, parts: list[str]) -> Iterator[int]:
    """Open the folder, one part below the other."""
    folder = os.dup(root)
    try:
        for part in parts:
            inner = os.open(part, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def place_of(root: int, path: str) -> Iterator[Place]:
    """Open the folder that has or will have the object."""
    parts = parts_of(path)
    if not parts:
        raise Refused(422, "bad_path")
    with opened_folder(root, parts[:-1]) as folder:
        yield Place(folder, parts[-1])


def stat_of(place: Place) -> os.stat_result:
    return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)


# --- Read


def kind_of(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def listed(root: int, path: str, after: str) -> dict[str, Any]:
    """List a folder by name, MOST_LISTED entries that come after a name."""
    with opened_folder(root, parts_of(path)) as folder:
        names = (name for name in names_in(folder) if name > after)
        found = nsmallest(MOST_LISTED + 1, names)
        entries = []
        for name in found[:MOST_LISTED]:
            with suppress(FileNotFoundError):
                seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
                entry = {"name": shown(name), "kind": kind_of(seen.st_mode), "size": seen.st_size}
                entries.append(dict(entry, modified=int(seen.st_mtime)))
        free = os.fstatvfs(folder)
    more = found[MOST_LISTED - 1] if len(found) > MOST_LISTED else None
    return {"entries": entries, "next": more and shown(more), "free": free.f_bavail * free.f_frsize}


def names_in(folder: int) -> Iterator[str]:
    """Yield the names in a folder, without those of uploads under way. Old ones of these are deleted."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(PART):
                yield entry.name
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > PART_KEPT_SECONDS:
                    os.unlink(entry.name, dir_fd=folder)


def shown(name: str) -> str:
    """Return a name as JSON can have it: bytes that are no UTF-8 are replaced, and cannot be opened here."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def opened_file(place: Place) -> int:
    """Open a regular file to read; without waiting for the other end of a pipe."""
    try:
        found = os.open(
            place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place.folder
        )
    except OSError:
        if kind_of(stat_of(place).st_mode) in ("link", "other"):
            raise Refused(409, "no_file") from None
        raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise Refused(409, "no_file")
    return found


def span_of(header: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte of a Range header; None: the whole file."""
    match = RANGE.fullmatch(header.strip())
    if not match or match.groups() == ("", ""):
        return None
    if not match[1]:
        first, last = max(0, size - int(match[2])), size - 1
    else:
        first, last = int(match[1]), min(size - 1, int(match[2] or size))
    if first > last:
        raise Refused(416, "bad_range", size=size)
    return first, last


# --- Write


class Piece(NamedTuple):
    """Part of an upload: where it begins, its length, and the size of the whole; `begin` None: how much is there?"""

    begin: int | None
    length: int
    total: int


def piece_of(header: str | None, length: int) -> Piece:
    if header is None:
        return Piece(0, length, length)
    match = CONTENT_RANGE.fullmatch(header.strip())
    if not match:
        raise Refused(400, "bad_range")
    total = int(match[3])
    if match[1] is None:
        if length:
            raise Refused(400, "bad_range")
        return Piece(None, 0, total)
    first, last = int(match[1]), int(match[2])
    if not first <= last < total or last - first + 1 != length:
        raise Refused(400, "bad_range")
    return Piece(first, length, total)


class Uploads:
    """Part files that are being written to: one request at a time each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[tuple[int, int]] = set()

    @contextmanager
    def alone(self, part: int) -> Iterator[None]:
        seen = os.fstat(part)
        key = seen.st_dev, seen.st_ino
        with self._lock:
            if key in self._taken:
                raise Refused(409, "upload_busy")
            self._taken.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._taken.discard(key)


def part_name(name: str, total: int, upload: str) -> str:
    return (
        PART
        + sha256("\0".join((name, str(total), upload)).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    )


def receive(
    place: Place, piece: Piece, upload: str, uploads: Uploads, read: Callable[[int], bytes]
) -> dict[str, Any]:
    """Append to the part file what comes; once it is whole, give it its name. Return what is there.

    What a broken connection had brought stays: the next request goes on behind it.
    """
    name = part_name(place.name, piece.total, upload)
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(stat_of(place).st_mode):
            raise Refused(409, "is_folder")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    part = os.open(name, flags, 0o644, dir_fd=place.folder)
    try:
        with uploads.alone(part):
            there = os.fstat(part).st_size
            if piece.begin == 0:
                os.ftruncate(part, 0)
                there = 0
            if piece.begin is None:
                return {"received": there, "size": piece.total}
            if piece.begin != there:
                raise Refused(409, "wrong_offset", received=there, size=piece.total)
            there += append(part, there, piece.length, read)
            if there < piece.total:
                return {"received": there, "size": piece.total}
            os.fsync(part)
            os.replace(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            os.fsync(place.folder)
    finally:
        os.close(part)
    return {"received": there, "size": piece.total, "done": True}


def append(part: int, at: int, length: int, read: Callable[[int], bytes]) -> int:
    os.lseek(part, at, os.SEEK_SET)
    left = length
    while left:
        data = read(min(PIECE, left))
        if not data:
            raise ConnectionError("the sender broke off")
        left -= len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(part, view) :]
    return length


def moved(root: int, path: str, to: str) -> None:
    """Rename without replacing. Refuse to move a folder into itself (the system does)."""
    with place_of(root, path) as source, place_of(root, to) as target:
        stat_of(source)
        with suppress(FileNotFoundError):
            stat_of(target)
            raise Refused(409, "already_there")
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)


def removed(place: Place, recursive: bool) -> bool:
    """Delete a file, or a folder. Return False if more of a large folder is left for the next request."""
    if not stat.S_ISDIR(stat_of(place).st_mode):
        os.unlink(place.name, dir_fd=place.folder)
        return True
    if recursive and not emptied(place, time.monotonic() + DELETING_SECONDS, 0):
        return False
    os.rmdir(place.name, dir_fd=place.folder)
    return True


def emptied(place: Place, deadline: float, depth: int) -> bool:
    """Delete what is in a folder, until the deadline. Return True if it is empty then."""
    if depth > DEEPEST:
        raise Refused(409, "too_deep")
    with closing_fd(os.open(place.name, FOLDER, dir_fd=place.folder)) as folder:
        while True:
            with os.scandir(folder) as entries:
                found = [next(entries, None) for _ in range(1000)]
            some = [entry for entry in found if entry is not None]
            if not some:
                return True
            for entry in some:
                if time.monotonic() > deadline:
                    return False
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                elif emptied(Place(folder, entry.name), deadline, depth + 1):
                    os.rmdir(entry.name, dir_fd=folder)
                else:
                    return False


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


# --- Refusals

# What the system says, in our words. Its text names no path outside of the folder, and is not sent.
OF_SYSTEM = {
    "FileNotFoundError": (404, "no_such_file"),
    "NotADirectoryError": (409, "no_folder"),
    "IsADirectoryError": (409, "is_folder"),
    "FileExistsError": (409, "already_there"),
    "PermissionError": (403, "no_permission"),
}
OF_NUMBER = {
    "ENOSPC": (507, "volume_full"),
    "EDQUOT": (507, "volume_full"),
    "EROFS": (403, "read_only"),
    "ELOOP": (409, "no_folder"),
    "ENOTEMPTY": (409, "not_empty"),
    "EINVAL": (422, "bad_path"),
    "ENAMETOOLONG": (422, "bad_path"),
}


def refusal_of(error: OSError) -> Refused:
    name = errno.errorcode.get(error.errno or 0, "")
    status, code = OF_NUMBER.get(name) or OF_SYSTEM.get(type(error).__name__) or (500, "failed")
    return Refused(status, code, system=name)
