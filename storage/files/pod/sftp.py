"""SFTP (version 3, draft-ietf-secsh-filexfer-02) on an open connection, for the files below one folder.

No path leads out of the folder, and no symbolic link is followed: each path is opened part by part, as in `tree`.
"""

from __future__ import annotations

import os
import posixpath
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedIOBase
from typing import Any

from .tree import Refused, closing_fd, moved, names_in, opened_folder, parts_of, place_of, stat_of

VERSION = 3
MOST_BYTES = 256 * 1024  # of one read or write
MOST_HANDLES = 64
MOST_NAMES = 100  # in one answer
INIT, ANSWER_VERSION = 1, 2
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
OK, END, NO_SUCH_FILE, NO_PERMISSION, FAILED, BAD, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
SIZE, OWNERS, MODE, TIMES = 1, 2, 4, 8
READS, WRITES, APPENDS, CREATES, EMPTIES, NEW = 1, 2, 4, 8, 16, 32
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
EXTENSIONS = (b"posix-rename@openssh.com", b"1", b"fsync@openssh.com", b"1")
OF_ERROR = {FileNotFoundError: NO_SUCH_FILE, PermissionError: NO_PERMISSION}
OF_CODE = {"no_such_file": NO_SUCH_FILE, "no_permission": NO_PERMISSION, "read_only": NO_PERMISSION}


class Packet:
    """A request, read from its start. Raises struct.error where it is too short."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def number(self, kind: str = ">I") -> int:
        (value,) = struct.unpack_from(kind, self.body, self.at)
        self.at += struct.calcsize(kind)
        return int(value)

    def text(self) -> bytes:
        length = self.number()
        if length > len(self.body) - self.at:
            raise struct.error("too short")
        self.at += length
        return self.body[self.at - length : self.at]

    def path(self) -> str:
        """Return a path from the folder, without `.` and `..`."""
        given = os.fsdecode(self.text())
        return posixpath.normpath("/" + given).lstrip("/")

    def attributes(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        which = self.number()
        if which & SIZE:
            found[SIZE] = (self.number(">Q"),)
        for one, count in ((OWNERS, 2), (MODE, 1), (TIMES, 2)):
            if which & one:
                found[one] = tuple(self.number() for _ in range(count))
        return found


def packed(*values: Any) -> bytes:
    """Return numbers as four bytes, and bytes with their length before them."""
    return b"".join(
        struct.pack(">I", one) if isinstance(one, int) else struct.pack(">I", len(one)) + one
        for one in values
    )


def described(seen: os.stat_result) -> bytes:
    times = (int(seen.st_atime) & 0xFFFFFFFF, int(seen.st_mtime) & 0xFFFFFFFF)
    size = struct.pack(">Q", seen.st_size)
    return (
        packed(SIZE | OWNERS | MODE | TIMES) + size + packed(seen.st_uid, seen.st_gid, seen.st_mode, *times)
    )


def long_name(name: bytes, seen: os.stat_result) -> bytes:
    when = time.strftime("%b %e %H:%M" if time.time() - seen.st_mtime < 15_552_000 else "%b %e  %Y",
                         time.localtime(seen.st_mtime))  # fmt: skip
    line = f"{stat.filemode(seen.st_mode)} {seen.st_nlink:3} {seen.st_uid:8} {seen.st_gid:8} {seen.st_size:8} {when} "
    return line.encode() + name


class Listing:
    """An open folder whose names are read little by little."""

    def __init__(self, folder: int) -> None:
        self.fd, self.names = folder, names_in(folder)

    def some(self) -> Iterator[bytes]:
        """Yield the next names with their attributes."""
        for _ in range(MOST_NAMES):
            name = next(self.names, None)
            if name is None:
                return
            with suppress(FileNotFoundError):
                seen = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
                encoded = os.fsencode(name)
                yield packed(encoded, long_name(encoded, seen)) + described(seen)


class Conversation:
    """Connection of one person. Requests are answered one after the other."""

    def __init__(self, reads: BufferedIOBase, writes: BufferedIOBase, root: int, *, read_only: bool) -> None:
        self.reads, self.writes, self.root, self.read_only = reads, writes, root, read_only
        self.handles: dict[bytes, int | Listing] = {}
        self.made = 0

    def run(self) -> None:
        """Answer until the other side closes."""
        try:
            while (body := self._next()) is not None:
                self._answer(body)
        finally:
            for handle in list(self.handles):
                self._close(handle)

    def _next(self) -> bytes | None:
        head = self.reads.read(4)
        if len(head) < 4:
            return None
        (length,) = struct.unpack(">I", head)
        if not 1 <= length <= MOST_BYTES + 4096:
            return None
        body = self.reads.read(length)
        return body if len(body) == length else None

    def _send(self, kind: int, body: bytes) -> None:
        self.writes.write(struct.pack(">IB", len(body) + 1, kind) + body)
        self.writes.flush()

    def _answer(self, body: bytes) -> None:
        kind, packet = body[0], Packet(body[1:])
        if kind == INIT:
            self._send(ANSWER_VERSION, packed(VERSION, *EXTENSIONS))
            return
        number = 0
        try:
            number = packet.number()
            work = WORK.get(kind)
            if work is None:
                self._status(number, UNSUPPORTED, "not supported")
                return
            found = work(self, packet)
        except struct.error:
            self._status(number, BAD, "bad message")
        except Refused as refused:
            code = refused.facts["code"]
            self._status(number, OF_CODE.get(code, FAILED), code.replace("_", " "))
        except EOFError:
            self._status(number, END, "end")
        except (OSError, OverflowError, ValueError) as error:
            code = next((code for one, code in OF_ERROR.items() if isinstance(error, one)), FAILED)
            self._status(number, code, getattr(error, "strerror", "") or "failed")
        else:
            if found is None:
                self._status(number, OK, "")
            else:
                self._send(found[0], packed(number) + found[1])

    def _status(self, number: int, code: int, text: str) -> None:
        self._send(STATUS, packed(number, code, text.encode(), b"en"))

    # --- handles

    def _keep(self, what: int | Listing) -> bytes:
        self.made += 1
        handle = b"%d" % self.made
        self.handles[handle] = what
        return handle

    def _room(self) -> None:
        if len(self.handles) >= MOST_HANDLES:
            raise Refused(429, "too_many_open_files")

    def _file(self, packet: Packet) -> int:
        found = self.handles.get(packet.text())
        if not isinstance(found, int):
            raise Refused(422, "no_such_handle")
        return found

    def _close(self, handle: bytes) -> None:
        found = self.handles.pop(handle, None)
        if found is None:
            raise Refused(422, "no_such_handle")
        if isinstance(found, Listing):
            found.names = iter(())
            os.close(found.fd)
        else:
            os.close(found)

    def _writes(self) -> None:
        if self.read_only:
            raise Refused(403, "read_only")

    # --- requests: each returns kind and body of its answer, None for a plain success

    def open(self, packet: Packet) -> tuple[int, bytes]:
        path, how, attributes = packet.path(), packet.number(), packet.attributes()
        flags = SAFE | {WRITES: os.O_WRONLY, READS | WRITES: os.O_RDWR}.get(how & 3, os.O_RDONLY)
        for one, flag in (
            (CREATES, os.O_CREAT),
            (EMPTIES, os.O_TRUNC),
            (NEW, os.O_EXCL),
            (APPENDS, os.O_APPEND),
        ):
            flags |= flag if how & one else 0
        if how & ~READS:
            self._writes()
        self._room()
        mode = attributes.get(MODE, (0o644,))[0] & 0o777
        with place_of(self.root, path) as place:
            file = os.open(place.name, flags, mode, dir_fd=place.folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise Refused(409, "no_file")
        handle = self._keep(file)
        return HANDLE, packed(handle)

    def close(self, packet: Packet) -> None:
        self._close(packet.text())

    def read(self, packet: Packet) -> tuple[int, bytes]:
        file, offset, length = self._file(packet), packet.number(">Q"), packet.number()
        data = os.pread(file, min(length, MOST_BYTES), offset)
        if not data:
            raise EOFError
        return DATA, packed(data)

    def write(self, packet: Packet) -> None:
        file, offset, data = self._file(packet), packet.number(">Q"), memoryview(packet.text())
        while data:
            count = os.pwrite(file, data, offset)
            data, offset = data[count:], offset + count

    def stat(self, packet: Packet) -> tuple[int, bytes]:
        path = packet.path()
        if not path:
            return ATTRS, described(os.fstat(self.root))
        with place_of(self.root, path) as place:
            return ATTRS, described(stat_of(place))

    def fstat(self, packet: Packet) -> tuple[int, bytes]:
        return ATTRS, described(os.fstat(self._file(packet)))

    def setstat(self, packet: Packet) -> None:
        self._writes()
        path, wanted = packet.path(), packet.attributes()
        flags = SAFE | (os.O_WRONLY if SIZE in wanted else os.O_RDONLY)
        with place_of(self.root, path) as place:
            found = os.open(place.name, flags, dir_fd=place.folder)
        with closing_fd(found):
            changed(found, wanted)

    def fsetstat(self, packet: Packet) -> None:
        self._writes()
        changed(self._file(packet), packet.attributes())

    def opendir(self, packet: Packet) -> tuple[int, bytes]:
        self._room()
        with opened_folder(self.root, parts_of(packet.path())) as folder:
            return HANDLE, packed(self._keep(Listing(os.dup(folder))))

    def readdir(self, packet: Packet) -> tuple[int, bytes]:
        found = self.handles.get(packet.text())
        if not isinstance(found, Listing):
            raise Refused(422, "no_such_handle")
        names = list(found.some())
        if not names:
            raise EOFError
        return NAME, packed(len(names)) + b"".join(names)

    def remove(self, packet: Packet) -> None:
        self._writes()
        with place_of(self.root, packet.path()) as place:
            os.unlink(place.name, dir_fd=place.folder)

    def mkdir(self, packet: Packet) -> None:
        self._writes()
        path, mode = packet.path(), packet.attributes().get(MODE, (0o755,))[0] & 0o777
        with place_of(self.root, path) as place:
            os.mkdir(place.name, mode, dir_fd=place.folder)

    def rmdir(self, packet: Packet) -> None:
        self._writes()
        with place_of(self.root, packet.path()) as place:
            os.rmdir(place.name, dir_fd=place.folder)

    def realpath(self, packet: Packet) -> tuple[int, bytes]:
        path = os.fsencode("/" + packet.path())
        return NAME, packed(1, path, path, 0)

    def rename(self, packet: Packet) -> None:
        self._writes()
        moved(self.root, packet.path(), packet.path())

    def extended(self, packet: Packet) -> None:
        what = packet.text()
        if what == b"fsync@openssh.com":
            os.fsync(self._file(packet))
        elif what == b"posix-rename@openssh.com":
            self._writes()
            with place_of(self.root, packet.path()) as source, place_of(self.root, packet.path()) as target:
                os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
        else:
            raise Refused(501, "not_supported")


def changed(file: int, wanted: dict[int, tuple[int, ...]]) -> None:
    """Change size, mode and times; owners stay."""
    if SIZE in wanted:
        os.ftruncate(file, wanted[SIZE][0])
    if MODE in wanted:
        os.fchmod(file, wanted[MODE][0] & 0o777)
    if TIMES in wanted:
        os.utime(file, (wanted[TIMES][0], wanted[TIMES][1]))


Work = Callable[[Conversation, Packet], "tuple[int, bytes] | None"]
WORK: dict[int, Work] = {
    3: Conversation.open, 4: Conversation.close, 5: Conversation.read, 6: Conversation.write, 7: Conversation.stat,
    8: Conversation.fstat, 9: Conversation.setstat, 10: Conversation.fsetstat, 11: Conversation.opendir,
    12: Conversation.readdir, 13: Conversation.remove, 14: Conversation.mkdir, 15: Conversation.rmdir,
    16: Conversation.realpath, 17: Conversation.stat, 18: Conversation.rename, 200: Conversation.extended,
}  # fmt: skip
