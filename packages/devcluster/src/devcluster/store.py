"""Store of all objects, in memory and in SQLite: every change gets a number and is on disk before it is answered.

Objects that were handed out are shared: treat them as frozen and `clone` before changing one.
"""

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from devcluster.errors import expired
from devcluster.resources import KINDS, Kind, Obj

FIRST_RV = 100
HISTORY, HISTORY_BYTES = 20_000, 48 * 2**20
"""Changes kept for watches that come late, and how long they may be as JSON; older ones are 410 Expired."""


def clone(value: Any) -> Any:
    """Return a deep copy of JSON values; many times faster than copy.deepcopy."""
    if type(value) is dict:
        return {k: clone(v) if type(v) in _PARTED else v for k, v in value.items()}
    if type(value) is list:
        return [clone(v) if type(v) in _PARTED else v for v in value]
    return value


_PARTED = frozenset({dict, list})


def encode(obj: Obj) -> bytes:
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()


class Stored(NamedTuple):
    """Object with its JSON, which is made once for the disk, watches and lists."""

    obj: Obj
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """Step of the history: ADDED, MODIFIED or DELETED, with the object before and after."""

    rv: int
    kind: Kind
    type: str
    obj: Obj
    old: Obj | None
    encoded: bytes


Listener = Callable[[Change], None]


class Store:
    def __init__(self, path: Path):
        self._objects: dict[Kind, dict[str, dict[str, Stored]]] = {k: {} for k in KINDS}
        self._listeners: list[Listener] = []
        self._history: deque[Change] = deque()
        self._history_bytes = 0
        self._db = sqlite3.connect(path, isolation_level=None)
        # WAL with NORMAL survives a kill of this process at any moment, which is what a trial needs.
        self._db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE IF NOT EXISTS objects (kind TEXT, namespace TEXT, name TEXT, body TEXT,"
            " PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;"
            "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
        )
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('rv', ?)", (FIRST_RV,))
        self.rv: int = self._db.execute("SELECT value FROM meta WHERE key='rv'").fetchone()[0]
        self.oldest = self.rv if self.rv > FIRST_RV else 0
        self._load()

    def _load(self) -> None:
        kinds = {k.qualified: k for k in KINDS}
        for qualified, namespace, name, body in self._db.execute(
            "SELECT kind, namespace, name, body FROM objects"
        ):
            if kind := kinds.get(qualified):
                stored = Stored(json.loads(body), body.encode())
                self._objects[kind].setdefault(namespace, {})[name] = stored

    def close(self) -> None:
        self._db.close()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every change. Return the function that stops that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        found = self._objects[kind].get(namespace, {}).get(name)
        return found.obj if found else None

    def stored(self, kind: Kind, namespace: str = "") -> Iterator[Stored]:
        """Yield objects with their JSON in key order, of every namespace if none is named."""
        spaces = self._objects[kind]
        for space in [namespace] if namespace else sorted(spaces, key=lambda s: f"{s}/"):
            found = spaces.get(space, {})
            yield from (found[name] for name in sorted(found))

    def all(self, kind: Kind, namespace: str = "") -> Iterator[Obj]:
        """Yield objects in key order."""
        return (found.obj for found in self.stored(kind, namespace))

    def each(self, kind: Kind, namespace: str = "") -> list[Obj]:
        """Return the same objects in no order, for scans."""
        spaces = self._objects[kind]
        if namespace:
            return [found.obj for found in spaces.get(namespace, {}).values()]
        return [found.obj for space in spaces.values() for found in space.values()]

    def put(self, kind: Kind, obj: Obj) -> Obj:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        old = self.get(kind, namespace, name)
        rv = self.rv + 1
        meta["resourceVersion"] = str(rv)
        encoded = encode(obj)
        with self._transaction(rv):
            self._db.execute(
                "INSERT OR REPLACE INTO objects VALUES (?,?,?,?)",
                (kind.qualified, namespace, name, encoded.decode()),
            )
        self._objects[kind].setdefault(namespace, {})[name] = Stored(obj, encoded)
        self._tell(Change(rv, kind, "MODIFIED" if old else "ADDED", obj, old, encoded))
        return obj

    def remove(self, kind: Kind, obj: Obj) -> Obj:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        rv = self.rv + 1
        last = {**obj, "metadata": {**meta, "resourceVersion": str(rv)}}
        with self._transaction(rv):
            self._db.execute(
                "DELETE FROM objects WHERE kind=? AND namespace=? AND name=?",
                (kind.qualified, namespace, name),
            )
        del self._objects[kind][namespace][name]
        self._tell(Change(rv, kind, "DELETED", last, obj, encode(last)))
        return last

    def since(self, rv: int) -> list[Change]:
        """Return the history after `rv`; raise ApiError 410 if part of it was dropped."""
        if rv < self.oldest:
            raise expired(rv, self.oldest)
        newer = []
        for change in reversed(self._history):
            if change.rv <= rv:
                break
            newer.append(change)
        return newer[::-1]

    def compact(self) -> None:
        """Drop the history, so that older watches expire."""
        self._history.clear()
        self._history_bytes = 0
        self.oldest = self.rv

    def _transaction(self, rv: int) -> "_Transaction":
        return _Transaction(self._db, rv)

    def _tell(self, change: Change) -> None:
        self.rv = change.rv
        self._history.append(change)
        self._history_bytes += len(change.encoded)
        while len(self._history) > HISTORY or self._history_bytes > HISTORY_BYTES:
            forgotten = self._history.popleft()
            self._history_bytes -= len(forgotten.encoded)
            self.oldest = forgotten.rv
        for listener in list(self._listeners):
            listener(change)


class _Transaction:
    """Transaction of one change and its number."""

    def __init__(self, db: sqlite3.Connection, rv: int):
        self._db, self._rv = db, rv

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            if self._db.in_transaction:  # a full disk may have ended it already
                self._db.execute("ROLLBACK")
            return
        try:
            self._db.execute("UPDATE meta SET value=? WHERE key='rv'", (self._rv,))
            self._db.execute("COMMIT")
        except sqlite3.Error:  # the disk is full: end the transaction, so that the next one can begin
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
