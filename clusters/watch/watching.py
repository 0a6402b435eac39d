"""Follow all objects of one kind in a cluster: list, then watch, for ever, whatever the network does.

Three generators, each simple enough to trust: `one_request` is one watch request; `continuous` lists and then
watches from there; `infinite` starts that over, with growing pauses, when it breaks. A watch is a hint and a
list is the truth: after every gap everything is listed anew.

Timeouts on both sides: the server ends a stream after a while by itself; a stream that is silent for longer is
ended here, since a dead network gives no sign.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from clusters.api import Api
from clusters.errors import ClusterError, ClusterRefused, ClusterUnavailable, StreamSilent
from clusters.transport import Json, Lines

SERVER_TIMEOUT_SECONDS = 50
READ_TIMEOUT_SECONDS = 65.0
# A stream that the server ends sooner than this without an event counts as a failure, or we would spin.
SHORTEST_STREAM_SECONDS = 5.0


# --- the steps that a follower yields


@dataclass(frozen=True)
class Listed:
    """Current objects, as the follower's `keep` has them, and the resource version of the list."""

    found: list[Any]
    version: str


@dataclass(frozen=True)
class Changed:
    change: str  # ADDED, MODIFIED or DELETED
    body: Json


@dataclass(frozen=True)
class Alive:
    """Sign that nothing changed: a bookmark, or a stream that ended in order."""


@dataclass(frozen=True)
class Lost:
    """Connection that broke or was refused. It is tried again."""

    error: ClusterError


Step = Listed | Changed | Alive | Lost


class Expired(Exception):
    """The server no longer knows the changes since the version: 410, as an answer or as an event."""


# --- how long to pause


@dataclass
class Backoff:
    """Pause that doubles from failure to failure; jitter keeps many watches from coming back at once."""

    shortest_seconds: float = 0.5
    longest_seconds: float = 30.0
    failures: int = 0
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def next_seconds(self, *, at_least_seconds: float = 0.0) -> float:
        """Return the next pause. `at_least_seconds`: the server's wish, kept up to `longest_seconds`."""
        seconds: float = min(self.longest_seconds, self.shortest_seconds * 2 ** min(self.failures, 16))
        self.failures += 1
        return max(seconds * (0.5 + self.jitter() / 2), min(at_least_seconds, self.longest_seconds))

    def reset(self) -> None:
        self.failures = 0


# --- the generators


@dataclass
class Follower:
    """Watch on one kind in one cluster. `stop` ends it from another thread, even in a silent stream."""

    api: Callable[[], Api]  # called for each request: a kubeconfig that was rewritten is read anew
    kind: str
    labels: Mapping[str, str] | None = None
    keep: Callable[[Json], Any] = lambda body: body  # what to keep of each listed object
    server_timeout_seconds: int = SERVER_TIMEOUT_SECONDS
    read_timeout_seconds: float = READ_TIMEOUT_SECONDS
    backoff: Backoff = field(default_factory=Backoff)
    stopped: threading.Event = field(default_factory=threading.Event)
    _stream: Lines | None = None

    def stop(self) -> None:
        self.stopped.set()
        if self._stream is not None:
            self._stream.close()

    def infinite(self) -> Iterator[Step]:
        """Repeat `continuous` until stopped. It is so simple that it is assumed to be right."""
        while not self.stopped.is_set():
            asked_for_seconds = 0.0
            try:
                yield from self.continuous()
            except Expired:
                pass  # listed anew after the pause
            except ClusterError as error:
                if not self.stopped.is_set():
                    yield Lost(error)
                asked_for_seconds = error.retry_after_seconds or 0.0
            self.stopped.wait(self.backoff.next_seconds(at_least_seconds=asked_for_seconds))

    def continuous(self) -> Iterator[Step]:
        """List once, then watch from there, one request after the other."""
        kept, version = self.api().list_with_version(self.kind, labels=self.labels, keep=self.keep)
        yield Listed(kept, version)
        while not self.stopped.is_set():
            started, heard = time.monotonic(), False
            try:
                for event in self.one_request(version):
                    version, heard = event["object"]["metadata"]["resourceVersion"], True
                    self.backoff.reset()
                    yield self._step(event)
            except StreamSilent:
                continue  # ask again from that version: on a dead network, this fails
            if self.stopped.is_set():
                return
            if not heard and time.monotonic() - started < SHORTEST_STREAM_SECONDS:
                raise ClusterUnavailable(f"The cluster ended the watch on {self.kind} at once.")
            self.backoff.reset()
            yield Alive()

    def one_request(self, version: str) -> Iterator[Json]:
        """Yield the events of one watch request, until the server ends it."""
        try:
            self._stream = self.api().watch(
                self.kind,
                version=version,
                labels=self.labels,
                server_timeout_seconds=self.server_timeout_seconds,
                read_timeout_seconds=self.read_timeout_seconds,
            )
        except ClusterRefused as refused:
            if refused.status == 410:
                raise Expired from None
            raise
        with closing(self._stream) as stream:
            if self.stopped.is_set():
                return
            for line in stream:
                yield event_of(line)

    def _step(self, event: Json) -> Step:
        if event["type"] == "BOOKMARK":
            return Alive()
        return Changed(event["type"], {**event["object"], "kind": self.kind})


def event_of(line: str) -> Json:
    """Return the event in a watch's line; raises Expired or ClusterUnavailable if it is none."""
    try:
        event: Json = json.loads(line)
        kind, body = event["type"], event["object"]
        version = "" if kind == "ERROR" else body["metadata"]["resourceVersion"]
        if version and isinstance(version, str):  # the next request starts from it
            return event
        code, message = body.get("code"), str(body.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ClusterUnavailable("The cluster's watch sent something that is not an event.") from None
    if code == 410:
        raise Expired
    raise ClusterUnavailable(f"The cluster ended the watch: {message}")
