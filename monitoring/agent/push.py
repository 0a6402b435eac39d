"""Reports on their way to the portal: kept while it is away, the oldest dropped when there are too many.

A report stays in the spool until the portal confirms it. So the portal may get a report twice, but never half of one.
Dropped reports are counted, and the count goes with every batch.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
import zlib
from collections import deque
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from .schema import VERSION, Head, Inventory, Report

PATH = "/api/v1/agent/samples/"
TIMEOUT_SECONDS = 10
# An hour of reports on 8 busy GPUs compresses to less than half of this.
SPOOL_BYTES = 4 << 20
BATCH_BYTES = 512 << 10
# With the random part, still shorter than the time after which the portal calls an agent silent.
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
# A report that the portal refuses as malformed will be refused again: it must not block the others.
_REFUSED_FOR_GOOD = {400, 413, 422}


class Kept(NamedTuple):
    sequence: int
    packed: bytes


class Spool:
    def __init__(self, most_bytes: int = SPOOL_BYTES) -> None:
        self.dropped = 0
        self.filled = threading.Event()
        self._most, self._size = most_bytes, 0
        self._kept: deque[Kept] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, report: Report) -> None:
        kept = Kept(report["sequence"], zlib.compress(json.dumps(report).encode(), 1))
        with self._lock:
            self._kept.append(kept)
            self._size += len(kept.packed)
            while self._size > self._most:
                self._size -= len(self._kept.popleft().packed)
                self.dropped += 1
        self.filled.set()

    def oldest(self, most: int) -> list[Kept]:
        with self._lock:
            return list(islice(self._kept, most))

    def forget(self, up_to_sequence: int) -> None:
        """Remove by number, not by position: a report that was just sent may have been dropped in the meantime."""
        with self._lock:
            while self._kept and self._kept[0].sequence <= up_to_sequence:
                self._size -= len(self._kept.popleft().packed)


class Answer(NamedTuple):
    """Answer of the portal. Status 0: no answer, and `words` has the reason."""

    status: int
    words: str = ""
    retry_after_seconds: float | None = None


class Portal:
    """Kept connection to the portal. The token is read for each request, as it may change at any time."""

    def __init__(self, address: str, token_file: Path, ca_file: Path | None) -> None:
        self._to: SplitResult = urlsplit(address)
        if self._to.scheme not in {"http", "https"} or not self._to.hostname:
            raise ValueError(f"not the address of a portal: {address}")
        self._path = self._to.path.rstrip("/") + PATH
        self._token_file = token_file
        self._tls = ssl.create_default_context() if self._to.scheme == "https" else None
        if self._tls is not None and ca_file is not None and ca_file.exists():
            self._tls.load_verify_locations(ca_file)
        self._connection: http.client.HTTPConnection | None = None

    def send(self, body: bytes) -> Answer:
        """Send the body. If the other side closed the kept connection, send once more over a new one."""
        kept = self._connection is not None
        try:
            return self._send(body)
        except (http.client.HTTPException, OSError, ValueError) as error:  # ValueError: a malformed token
            self.close()
            if kept and isinstance(error, ConnectionError):
                return self.send(body)
            return Answer(0, f"{type(error).__name__}: {error}")

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _send(self, body: bytes) -> Answer:
        token = self._token_file.read_text(errors="replace").strip()
        if not (token and token.isascii() and token.isprintable()):
            raise ValueError(
                "the file of the token does not hold one line of plain text"
            )  # http.client would quote the token in its error
        connection = self._connection = self._connection or self._connect()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", self._path, body, headers)
        with connection.getresponse() as response:
            words = response.read(2000).decode("utf-8", "replace")
            after = response.getheader("Retry-After", "")
            if response.read(1):
                self.close()  # longer than any answer of the portal: read no more
            return Answer(response.status, words, float(after) if after.isdecimal() else None)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = str(self._to.hostname), self._to.port
        if self._tls:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)


class Pusher:
    """Sender of reports. `push` does one step and returns the seconds to wait; 0 if more is there already."""

    def __init__(self, spool: Spool, portal: Portal, node: str) -> None:
        self.inventory: Inventory | None = None
        self.sent = self.refused = self.failures = 0
        self.failure = ""
        self._spool, self._portal, self._node = spool, portal, node
        self._agent = os.urandom(8).hex()
        self._wait = FIRST_WAIT_SECONDS
        self._alone = False

    def push(self) -> float:
        reports, last = self._next()
        if not reports:
            self._alone = False
            return 0
        answer = self._portal.send(self._batch(reports))
        if 200 <= answer.status < 300:
            self._spool.forget(last)
            self.sent += len(reports)
            self._wait, self.failure = FIRST_WAIT_SECONDS, ""
            return 0
        self.failures += 1
        self.failure = f"{answer.status or 'no answer'}: {answer.words[:200]}"
        if answer.status in _REFUSED_FOR_GOOD:
            return self._refused(len(reports), last)
        wait, self._wait = self._wait, min(self._wait * 2, LONGEST_WAIT_SECONDS)
        if answer.retry_after_seconds is not None:
            wait = min(max(answer.retry_after_seconds, FIRST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
        # Random part, so that not all nodes send at the same moment when the portal is back.
        return wait * (0.75 + os.urandom(1)[0] / 512)

    def _next(self) -> tuple[list[str], int]:
        reports: list[str] = []
        size = last = 0
        for kept in self._spool.oldest(1 if self._alone else 1000):
            unpacked = zlib.decompress(kept.packed).decode()
            size += len(unpacked)
            if reports and size > BATCH_BYTES:
                break
            reports.append(unpacked)
            last = kept.sequence
        return reports, last

    def _batch(self, reports: list[str]) -> bytes:
        head: Head = {
            "version": VERSION,
            "node": self._node,
            "agent": self._agent,
            "sent_at": time.time(),
            "dropped": self._spool.dropped + self.refused,
        }
        if self.inventory is not None:
            head["inventory"] = self.inventory
        return f'{json.dumps(head)[:-1]}, "reports": [{",".join(reports)}]}}'.encode()

    def _refused(self, count: int, last: int) -> float:
        """Send the reports alone first: only one of them may be at fault. Give up a report that is refused alone."""
        if count > 1:
            self._alone = True
        else:
            self._spool.forget(last)
            self.refused += 1
            self._alone = False
        return FIRST_WAIT_SECONDS
