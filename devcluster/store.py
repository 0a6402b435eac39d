"""All objects, in memory and in SQLite: every change is on disk before it is answered, and every change has a number.

Objects that were handed out are shared: treat them as frozen and `clone` before changing one.
"""

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.errors import expired
from devcluster.resources import KINDS, Kind, Obj

FIRST_RV = 100
HISTORY = 20_000
"""Changes kept for watches that come late; older ones are answered with 410 Expired."""


def clone(value: Any) -> Any:
    """A deep copy of JSON values; several times faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {k: clone(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clone(v) for v in value]
    return value


@dataclass(frozen=True, slots=True)
class Change:
    """One step of history: ADDED, MODIFIED or DELETED, with the object before and after."""

    rv: int
    kind: Kind
    type: str
    obj: Obj
    old: Obj | None


Listener = Callable[[Change], None]


class Store:
    def __init__(self, path: Path):
        self._objects: dict[Kind, dict[str, dict[str, Obj]]] = {k: {} for k in KINDS}
        self._listeners: list[Listener] = []
        self._history: deque[Change] = deque(maxlen=HISTORY)
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
                self._objects[kind].setdefault(namespace, {})[name] = json.loads(body)

    def close(self) -> None:
        self._db.close()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every change; returns how to stop it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        return self._objects[kind].get(namespace, {}).get(name)

    def all(self, kind: Kind, namespace: str = "") -> Iterator[Obj]:
        """Objects in key order; of every namespace when none is named."""
        spaces = self._objects[kind]
        for space in [namespace] if namespace else sorted(spaces):
            found = spaces.get(space, {})
            yield from (found[name] for name in sorted(found))

    def each(self, kind: Kind, namespace: str = "") -> list[Obj]:
        """The same in no order, for scans."""
        spaces = self._objects[kind]
        if namespace:
            return list(spaces.get(namespace, {}).values())
        return [obj for space in spaces.values() for obj in space.values()]

    def put(self, kind: Kind, obj: Obj) -> Obj:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        old = self.get(kind, namespace, name)
        rv = self.rv + 1
        meta["resourceVersion"] = str(rv)
        body = json.dumps(obj, separators=(",", ":"))
        with self._transaction(rv):
            self._db.execute(
                "INSERT OR REPLACE INTO objects VALUES (?,?,?,?)", (kind.qualified, namespace, name, body)
            )
        self._objects[kind].setdefault(namespace, {})[name] = obj
        self._tell(Change(rv, kind, "MODIFIED" if old else "ADDED", obj, old))
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
        self._tell(Change(rv, kind, "DELETED", last, obj))
        return last

    def since(self, rv: int) -> list[Change]:
        """History after `rv`; 410 when part of it is forgotten."""
        if rv < self.oldest:
            raise expired(rv, self.oldest)
        newer = []
        for change in reversed(self._history):
            if change.rv <= rv:
                break
            newer.append(change)
        return newer[::-1]

    def compact(self) -> None:
        """Forget history, so that watches from before now expire."""
        self._history.clear()
        self.oldest = self.rv

    def _transaction(self, rv: int) -> "_Transaction":
        return _Transaction(self._db, rv)

    def _tell(self, change: Change) -> None:
        if len(self._history) == HISTORY:
            self.oldest = self._history[0].rv
        self.rv = change.rv
        self._history.append(change)
        for listener in list(self._listeners):
            listener(change)


class _Transaction:
    """One change and its number, committed together."""

    def __init__(self, db: sqlite3.Connection, rv: int):
        self._db, self._rv = db, rv

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._db.execute("ROLLBACK")
            return
        self._db.execute("UPDATE meta SET value=? WHERE key='rv'", (self._rv,))
        self._db.execute("COMMIT")
