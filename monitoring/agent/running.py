"""The threads of the agent. A thread that hangs or fails does not affect the others.

looks    asks NVML and the kubelet, every few seconds and at once after an Xid
pushes   brings reports to the portal
serves   answers Prometheus
main     watches the looks: a driver that hangs is reported, and does not hang this thread
"""

from __future__ import annotations

import itertools
import logging
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from typing import NamedTuple

from . import exposition
from .cgroups import FOLDER, OomCounts
from .exposition import Metric
from .look import Looker
from .push import Portal, Pusher, Spool
from .schema import Look, Trouble
from .volumes import TOKEN_FILE, VolumeUses

logger = logging.getLogger("monitoring.agent")

# A look takes well under a second. A driver that has not answered by now hangs.
HANGS_AFTER_SECONDS = 30
# Minimum between two looks, so that a storm of Xids is not a storm of looks.
LEAST_SECONDS = 1
LEAVING_SECONDS = 0.5
# Limit for one connection to the metrics, however slowly its client sends or reads.
SCRAPE_SECONDS = 10


class Settings(NamedTuple):
    node: str
    interval_seconds: float
    dev: Path
    proc: Path
    kubelet: Path
    pod: str  # name of this agent's pod; empty: it runs in none
    portal: str  # empty: nothing is pushed
    token_file: Path
    ca_file: Path | None
    listen: tuple[str, int] | None
    kubelet_ip: str = ""  # empty: it is not asked how full volumes are
    kubelet_token_file: Path = TOKEN_FILE
    cgroups: Path = FOLDER


class Agent:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._wake = threading.Event()
        places = settings.dev, settings.proc, settings.kubelet
        uses = VolumeUses(settings.kubelet_ip, settings.kubelet_token_file)
        kills = OomCounts(settings.cgroups)
        self._looker = Looker(
            *places, settings.pod, on_xid=self._wake.set, volumes=uses.due, oom_kills=kills.news
        )
        self._publishing = threading.Lock()
        self._numbers = itertools.count(1)
        self._latest: Look | None = None
        self._xids: Counter[tuple[str, int]] = Counter()
        self._looked_at = time.monotonic()
        self._spool = Spool()
        self._pusher: Pusher | None = None
        if settings.portal:
            portal = Portal(settings.portal, settings.token_file, settings.ca_file)
            self._pusher = Pusher(self._spool, portal, settings.node)
        self._server = _server(settings.listen, self.text) if settings.listen else None

    def run(self, ended: Callable[[float], bool]) -> None:
        """Run until `ended`, called with seconds to wait, returns True; then stop within a second, whatever hangs."""
        threads = [
            threading.Thread(target=loop, name=loop.__name__, daemon=True)
            for loop in (self._looks, self._pushes, self._serves)
        ]
        for thread in threads:
            thread.start()
        while not ended(self._settings.interval_seconds):
            self._watch_over()
        self._stopping.set()
        self._wake.set()
        self._spool.filled.set()
        threads[0].join(LEAVING_SECONDS)

    def text(self) -> str:
        return exposition.text(self._latest, self._looker.inventory, dict(self._xids), self._own())

    # --- Loops

    def _looks(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._publish(self._looker.look())
            except Exception as error:
                logger.exception("A look failed")
                self._report_problem("agent_failed", repr(error))
            self._looked_at = time.monotonic()
            self._wake.wait(max(LEAST_SECONDS, began + self._settings.interval_seconds - self._looked_at))
            if self._wake.is_set():
                self._stopping.wait(began + LEAST_SECONDS - time.monotonic())
                self._wake.clear()
        self._looker.close()

    def _pushes(self) -> None:
        if not self._pusher:
            return
        last = ""
        while not self._stopping.is_set():
            self._spool.filled.wait()
            self._spool.filled.clear()
            while len(self._spool) and not self._stopping.is_set():
                self._pusher.inventory = self._looker.inventory
                wait = self._pusher.push()
                if self._pusher.failure != last:
                    last = self._pusher.failure
                    logger.warning("The portal %s", f"does not take reports: {last}" if last else "is back")
                self._stopping.wait(wait)

    def _serves(self) -> None:
        if not self._server:
            return
        with self._server:
            while not self._stopping.is_set():
                self._server.handle_request()

    def _watch_over(self) -> None:
        late = time.monotonic() - self._looked_at - self._settings.interval_seconds
        if late > HANGS_AFTER_SECONDS:
            self._report_problem("nvml_hangs", f"for {late:.0f} s")

    def _report_problem(self, code: str, detail: str) -> None:
        """Publish a problem in place of a look, which may still be under way, with the Xids collected meanwhile."""
        troubles: list[Trouble] = [{"code": code, "detail": detail}]
        xids = self._looker.new_xids()
        self._publish({"taken_at": time.time(), "troubles": troubles, "gpus": [], "xids": xids})

    def _publish(self, seen: Look) -> None:
        """Number and store a report under a lock: several threads call this, and the spool forgets by number."""
        with self._publishing:
            before = {trouble["code"] for trouble in self._latest["troubles"]} if self._latest else set()
            if {trouble["code"] for trouble in seen["troubles"]} != before:
                logger.warning("Troubles now: %s", seen["troubles"] or "none")
            for xid in seen["xids"]:
                self._xids[xid.get("uuid", ""), xid["xid"]] += 1
            self._latest = seen
            if self._pusher:
                self._spool.put({**seen, "sequence": next(self._numbers)})

    def _own(self) -> Iterator[tuple[Metric, float]]:
        if self._pusher:
            yield Metric("berth_agent_reports_waiting", "Reports not pushed yet."), len(self._spool)
            yield Metric("berth_agent_reports_dropped_total", "Reports given up."), self._spool.dropped
            yield Metric("berth_agent_reports_refused_total", "Reports refused."), self._pusher.refused
            yield Metric("berth_agent_reports_pushed_total", "Reports pushed."), self._pusher.sent
            yield Metric("berth_agent_push_failures_total", "Pushes that failed."), self._pusher.failures


def _server(listen: tuple[str, int], text: Callable[[], str]) -> TCPServer:
    """Return the metrics server. It serves one request at a time, so that clients cannot fill this process."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def setup(self) -> None:
            super().setup()
            self._end = threading.Timer(SCRAPE_SECONDS, self._hang_up)
            self._end.daemon = True
            self._end.start()

        def finish(self) -> None:
            self._end.cancel()
            super().finish()

        def _hang_up(self) -> None:
            with suppress(OSError):  # the connection has just ended
                self.connection.shutdown(socket.SHUT_RDWR)

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Log nothing: a scrape is no news."""

    class Server(TCPServer):
        address_family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
        allow_reuse_address = True
        timeout = LEAVING_SECONDS  # seconds to wait for a request

        def handle_error(self, request: object, client_address: object) -> None:
            logger.info("A scrape broke off: %s", sys.exception())

    return Server(listen, Handler)
