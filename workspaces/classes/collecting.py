"""Collect a folder of each person of a class: read through their Jupyter, sent on as one tar archive, held nowhere.

What comes from a workspace is its person's. So names are checked, and sizes, numbers and times have limits. The last
file of the archive names what was left out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tarfile
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any
from urllib.parse import quote
from uuid import UUID

import aiohttp
from channels.db import database_sync_to_async
from django.db import close_old_connections, connection
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy, override
from django.utils.translation import gettext as _
from yarl import URL

from accounts.access import Actor
from accounts.credentials.sign_in import still
from accounts.errors import Conflict, Invalid, Refusal, TooMany
from accounts.places import Places
from accounts.trail import audit
from workspaces.gateway import upstream
from workspaces.models import ClassLaunch, Phase, Seat
from workspaces.state import jupyter
from workspaces.state.live import changing
from workspaces.state.story import add_event

from .launching import require
from .reading import phase_of

log = logging.getLogger(__name__)

# Of one person. A link may lead anywhere: what cannot be read counts too.
MOST_BYTES, MOST_FILES, MOST_FOLDERS, DEEPEST = 256 << 20, 2_000, 500, 12
MOST_LISTING_BYTES, MOST_LISTED_BYTES = 1 << 20, 4 << 20  # of one folder; of all
MOST_NAMES = MOST_FILES + MOST_FOLDERS  # of one folder
SILENCE_SECONDS = 20
# How long a person's server may be waited for: so long, and what it sends at this pace beside.
SECONDS_OF_PERSON, SLOWEST_BYTES_PER_SECOND = 60, 1 << 20
SECONDS_OF_ARCHIVE = 2 * 60 * 60
LONGEST_FOLDER, LONGEST_NAME = 200, 255
MOST_OF_PERSON = 2  # archives under way, in this process
BLOCK = tarfile.BLOCKSIZE
LAST = "collected.txt"

MOST_SAID = 20  # of one person
NOT_THERE = gettext_lazy("%(path)s: not there")
TOO_MANY_NAMES = gettext_lazy("%(path)s: too many files")
TOO_DEEP = gettext_lazy("%(path)s: too many folders in each other")
NOT_READABLE = gettext_lazy("%(path)s: not readable")
TOO_LARGE = gettext_lazy("%(path)s: left out, as it would be more than %(mib)d MiB for one person")
CUT_SHORT = gettext_lazy("%(path)s: cut short, and filled with zeros")
TOO_MANY_FILES = gettext_lazy("left out what comes after %(files)d files")
TOO_MANY_FOLDERS = gettext_lazy("left out what comes after %(folders)d folders")
TOOK_TOO_LONG = gettext_lazy("not collected: the archive took too long")
BROKE_OFF = gettext_lazy("the connection broke off")

EXPECTED = (aiohttp.ClientError, OSError, TimeoutError)

_under_way = Places(MOST_OF_PERSON)


@dataclass(frozen=True)
class Source:
    """Where the folder of one person is read. Without an address it cannot be: `why` says so."""

    person: str
    workspace: UUID | None = None
    address: str = ""
    token: str = field(default="", repr=False)
    why: str = ""


@dataclass(frozen=True)
class File:
    path: str  # below the folder
    modified: float


# --- Pure: names and blocks of the archive


def is_safe(name: str) -> bool:
    """Return True for a name that is one step of a path, and can be shown."""
    return (
        0 < len(name) <= LONGEST_NAME and name not in (".", "..") and "/" not in name and name.isprintable()
    )


def steps_of(folder: str) -> list[str]:
    """Return the steps of a folder's path in the home. Raise Invalid if it is none."""
    steps = [step for step in folder.removeprefix("~").strip("/").split("/") if step]
    if not steps or len(folder) > LONGEST_FOLDER or not all(map(is_safe, steps)):
        text = _("Give a folder in the home, such as hand-in.")
        raise Invalid("invalid_folder", text, _("Correct the folder."), fields={"folder": [text]})
    return steps


def header(path: str, size: int, modified: float) -> bytes:
    """Return the header blocks of a file in a tar archive."""
    entry = tarfile.TarInfo(path)
    entry.size, entry.mtime, entry.mode = size, int(modified), 0o644
    return entry.tobuf(tarfile.PAX_FORMAT, errors="replace")


def padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


def entries_of(body: Any) -> list[tuple[str, bool, float]]:
    """Return the names in a listing of Jupyter's contents API, each with True for a folder, and its time."""
    content = body.get("content") if isinstance(body, dict) else None
    found = []
    for one in content[:MOST_NAMES] if isinstance(content, list) else []:
        name, kind = (one.get("name"), one.get("type")) if isinstance(one, dict) else (None, None)
        if isinstance(name, str) and is_safe(name):
            found.append((name, kind == "directory", _time_of(one.get("last_modified"))))
    return sorted(found)


def _entries_in(body: bytes) -> list[tuple[str, bool, float]]:
    try:
        return entries_of(json.loads(body))
    except (ValueError, RecursionError):
        return []


def _time_of(text: Any) -> float:
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        return 0.0


# --- The archive


def begin(actor: Actor, row: ClassLaunch, folder: str) -> Archive:
    """Return the archive, which is made while it is sent. Raise a Refusal if there is nothing to read it from."""
    require(actor, row.tenant)
    steps = steps_of(folder)
    rows = row.seats.select_related("user", "workspace__secret", "workspace__owner")
    sources = [_source(seat) for seat in rows.order_by("pk")]
    if not any(source.address for source in sources):
        text = _("No workspace of this class is ready.")
        raise Conflict("nothing_ready", text, _("Folders are collected while the workspaces run."))
    if not _under_way.take(actor.user.pk):
        text = _("You collect %(count)d folders already, the most at the same time.")
        hint = _("Wait until one has ended.")
        raise TooMany("too_many_archives", text % {"count": MOST_OF_PERSON}, hint, retry_after_seconds=10)
    audit.record(actor, "class.collect", target=row, tenant=row.tenant, data={"folder": "/".join(steps)})
    return Archive(actor, row, steps, sources)


def answer(archive: Archive) -> StreamingHttpResponse:
    """Return the archive as a download."""
    if not connection.in_atomic_block:
        close_old_connections()  # the reader stays for minutes, and keeps no place of the web process's pool
    disposition = f"attachment; filename*=UTF-8''{quote(archive.name, safe='')}"
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return StreamingHttpResponse(archive, content_type="application/x-tar", headers=headers)


def _source(seat: Seat) -> Source:
    person = seat.user.get_username() if seat.user else seat.username
    if seat.workspace is None:
        return Source(person, why=seat.message or _("no workspace yet"))
    address = jupyter.address(seat.workspace)
    if not address:
        label = Phase(phase_of(seat)).label
        return Source(
            person, seat.workspace.pk, why=_("the workspace is not ready: %(phase)s") % {"phase": label}
        )
    return Source(person, seat.workspace.pk, address, jupyter.gateway_token(seat.workspace))


class Archive:
    """Pieces of the archive. It counts for its reader until it is closed."""

    def __init__(self, actor: Actor, row: ClassLaunch, steps: list[str], sources: list[Source]) -> None:
        self._actor, self._row, self._steps, self._sources = actor, row, steps, sources
        self._language = get_language() or "en"
        self._is_open = True
        self._report: list[str] = []

    @property
    def name(self) -> str:
        return f"{self._row.name}-{self._steps[-1]}.tar"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            until = monotonic() + SECONDS_OF_ARCHIVE
            for number, source in enumerate(self._sources, start=1):
                if source.address and monotonic() > until:
                    with override(self._language):
                        self._report.append(f"{source.person}: {TOOK_TOO_LONG}")
                    continue
                if source.address and not await database_sync_to_async(self._allow)(source):
                    return
                reader = Reader(source, self._steps)
                folder = source.person if is_safe(source.person) else f"person-{number}"
                async for piece in reader.pieces(folder):
                    yield piece
                with override(self._language):
                    self._report.append(f"{source.person}: {'; '.join(reader.said())}")
            text = "\n".join([*self._report, ""]).encode()
            yield header(LAST, len(text), timezone.now().timestamp()) + text + padding(len(text))
            yield bytes(2 * BLOCK)
        finally:
            self.close()

    def _allow(self, source: Source) -> bool:
        """Return False once the reader lost the right. Tell the workspace's person that the folder is read."""
        try:
            actor = still(self._actor)
            require(actor, self._row.tenant)
        except Refusal:
            return False
        assert source.workspace is not None
        with changing(source.workspace) as workspace:
            by, folder = actor.user.get_username(), "/".join(self._steps)
            add_event(workspace, "folder_collected", by=by, folder=folder)
        return True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            _under_way.give_back(self._actor.user.pk)


class Reader:
    """Reads the folder of one person, and counts what it found."""

    def __init__(self, source: Source, steps: list[str]) -> None:
        self._source, self._steps = source, steps
        self._tried, self._files, self._bytes = 0, 0, 0
        self._listed, self._came, self._waited = 0, 0, 0.0
        self._left_out: list[tuple[Promise, dict[str, Any]]] = []

    def said(self) -> list[str]:
        """Return what was collected, in words of a log."""
        if self._source.why:
            return [self._source.why]
        texts = [str(text) % values for text, values in self._left_out]
        found = {"files": self._files, "bytes": self._bytes}
        return [_("files: %(files)d, bytes: %(bytes)d") % found, *texts]

    def _note(self, text: Promise, path: str = "") -> None:
        if len(self._left_out) < MOST_SAID:
            values = {"path": path or "/".join(self._steps), "mib": MOST_BYTES >> 20}
            self._left_out.append((text, values | {"files": MOST_FILES, "folders": MOST_FOLDERS}))

    async def pieces(self, folder: str) -> AsyncIterator[bytes]:
        """Yield the person's files as parts of a tar archive, below this folder. Whatever they send, it goes on."""
        if not self._source.address:
            return
        try:
            async for file in self._walk():
                self._tried += 1
                if self._tried > MOST_FILES:
                    self._note(TOO_MANY_FILES)
                    return
                async for piece in self._file(folder, file):
                    yield piece
        except EXPECTED:
            self._note(BROKE_OFF)
        except Exception:
            log.exception("the folder of workspace %s could not be read", self._source.workspace)
            self._note(BROKE_OFF)

    async def _walk(self) -> AsyncIterator[File]:
        """Yield the files below the folder, by name."""
        folders = [""]
        seen = 1
        while folders:
            folder = folders.pop()
            for name, is_folder, modified in await self._listing(folder):
                path = f"{folder}/{name}" if folder else name
                if not is_folder:
                    yield File(path, modified)
                elif path.count("/") >= DEEPEST:
                    self._note(TOO_DEEP, path)
                elif seen < MOST_FOLDERS:
                    seen += 1
                    folders.append(path)
                elif seen == MOST_FOLDERS:
                    seen += 1
                    self._left_out.insert(0, (TOO_MANY_FOLDERS, {"folders": MOST_FOLDERS}))

    async def _listing(self, folder: str) -> list[tuple[str, bool, float]]:
        query = {"content": "1", "type": "directory"}
        async with await self._in_time(self._get("api/contents", folder, query)) as given:
            if given.status != 200:
                self._note(NOT_THERE, folder)
                return []
            body = b""
            while piece := await self._in_time(given.content.readany()):
                body += piece
                self._listed += len(piece)
                if len(body) > MOST_LISTING_BYTES or self._listed > MOST_LISTED_BYTES:
                    self._note(TOO_MANY_NAMES, folder)
                    return []
        return await asyncio.to_thread(_entries_in, body)

    async def _file(self, folder: str, file: File) -> AsyncIterator[bytes]:
        """Yield one file. What a broken connection left out is filled with zeros, and named."""
        async with await self._in_time(self._get("files", file.path, {})) as given:
            size = given.content_length
            if given.status != 200 or size is None:
                self._note(NOT_READABLE, file.path)
                return
            if self._bytes + size > MOST_BYTES:
                self._note(TOO_LARGE, file.path)
                return
            self._files, self._bytes = self._files + 1, self._bytes + size
            yield header(f"{folder}/{file.path}", size, file.modified)
            sent = 0
            try:
                while sent < size and (piece := await self._in_time(given.content.readany())):
                    piece = piece[: size - sent]
                    self._came, sent = self._came + len(piece), sent + len(piece)
                    yield piece
            except EXPECTED:
                self._note(CUT_SHORT, file.path)
            except Exception:
                log.exception("a file of workspace %s could not be read", self._source.workspace)
                self._note(CUT_SHORT, file.path)
            for begin in range(sent, size, 1 << 16):
                yield bytes(min(1 << 16, size - begin))
            yield padding(size)

    async def _in_time(self, coming: Awaitable[Any]) -> Any:
        """Wait for the person's server. Raise a TimeoutError once it took too long in all."""
        begun = monotonic()
        left = SECONDS_OF_PERSON + self._came / SLOWEST_BYTES_PER_SECOND - self._waited
        try:
            async with asyncio.timeout(left):
                return await coming
        finally:
            self._waited += monotonic() - begun

    def _get(self, way: str, path: str, query: dict[str, str]) -> Any:
        steps = [*self._steps, *(path.split("/") if path else [])]
        address = f"{self._source.address}{way}/{'/'.join(quote(step, safe='') for step in steps)}"
        return upstream.client().get(
            URL(address, encoded=True).update_query(query),
            headers={"Authorization": f"token {self._source.token}"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENCE_SECONDS),
        )
