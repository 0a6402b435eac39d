"""Watches: history from a resourceVersion on, then every change as it happens, filtered by a selector."""

import asyncio
from collections.abc import Callable, Iterator

from devcluster.errors import ApiError
from devcluster.resources import Kind, Obj
from devcluster.serving.listing import check_version
from devcluster.serving.requests import Query
from devcluster.serving.views import dump, typed_json
from devcluster.store import Change, Store, encode
from devcluster.values.selectors import Match

BOOKMARK_SECONDS = 30
BACKLOG = 20_000
"""Changes that a slow reader may fall behind before its watch is ended."""

Render = Callable[[Kind, Obj], Obj]
"""Another form of an object than the whole, such as a table's row."""


class Watch:
    """View of one client on one kind; iterate `first()` and then `next()`."""

    def __init__(self, store: Store, kind: Kind, namespace: str, match: Match, render: Render | None = None):
        self._store, self._kind, self._namespace, self._match = store, kind, namespace, match
        self._render = render
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._stop: Callable[[], None] | None = None
        self.overrun = False

    def __enter__(self) -> "Watch":
        self._stop = self._store.listen(self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stop:
            self._stop()

    def _heard(self, change: Change) -> None:
        if change.kind is self._kind and self._here(change.obj):
            self._changes.put_nowait(change)
            self.overrun = self._changes.qsize() > BACKLOG

    def _here(self, obj: Obj) -> bool:
        return not self._namespace or obj["metadata"].get("namespace") == self._namespace

    def first(self, rv: int, query: Query) -> list[bytes]:
        """Return present objects as ADDED, or the changes since `rv`; an ERROR for an invalid or expired version."""
        streams_list = query.flag("sendInitialEvents")
        try:
            if streams_list:
                check_version(self._store, rv)
            lines = list(
                self._present() if streams_list or (not rv and not _declines(query)) else self._since(rv)
            )
        except ApiError as error:
            return [dump({"type": "ERROR", "object": error.status})]
        if streams_list and query.flag("allowWatchBookmarks"):
            lines.append(self.bookmark(initial_events_end=True))
        return lines

    def _present(self) -> Iterator[bytes]:
        for obj, encoded in self._store.stored(self._kind, self._namespace):
            if self._match(obj):
                yield self._line("ADDED", obj, encoded)

    def _since(self, rv: int) -> Iterator[bytes]:
        for change in self._store.since(rv or self._store.rv):
            if change.kind is self._kind and self._here(change.obj) and (line := self._seen(change)):
                yield line

    async def next(self) -> bytes | None:
        """Wait for the next change. Return its line, or None if the client does not see that change."""
        return self._seen(await self._changes.get())

    def _seen(self, change: Change) -> bytes | None:
        now = change.type != "DELETED" and self._match(change.obj)
        before = change.old is not None and self._match(change.old)
        if now:
            return self._line("MODIFIED" if before else "ADDED", change.obj, change.encoded)
        if not before or change.old is None:
            return None
        if change.type == "DELETED":
            return self._line("DELETED", change.obj, change.encoded)
        last = {**change.old, "metadata": {**change.old["metadata"], "resourceVersion": str(change.rv)}}
        return self._line("DELETED", last, encode(last))

    def _line(self, event: str, obj: Obj, encoded: bytes) -> bytes:
        if self._render:
            return dump({"type": event, "object": self._render(self._kind, obj)})
        return b'{"type":"%b","object":%b}\n' % (event.encode(), typed_json(self._kind, encoded))

    def bookmark(self, initial_events_end: bool = False) -> bytes:
        meta: Obj = {"resourceVersion": str(self._store.rv)}
        if initial_events_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": meta}
        return dump({"type": "BOOKMARK", "object": obj})


def _declines(query: Query) -> bool:
    """Return True if the client declines the initial objects."""
    return "sendInitialEvents" in query and not query.flag("sendInitialEvents")
