"""Faults of a running Berth's database and processes, and what people notice of them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from portal.up import leftovers
from tests.e2e.stack import Client, Stack, until

Json = dict[str, Any]
TENANT = "host"
ENOUGH_SECONDS = 120
SENTENCE = "The database cannot handle this request right now."
HINT = "Nothing was changed. Try again in a few seconds."


@dataclass
class Person:
    """API user who retries while the database is away, and collects the messages of the refusals."""

    api: Client
    told: set[str] = field(default_factory=set)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the first answer below 300. Retry a 503, which must carry the message of a database that is away, and
        a 429 of somebody whose earlier requests have not been answered."""
        key = {"Idempotency-Key": uuid4().hex} if method == "POST" else {}
        deadline = time.monotonic() + ENOUGH_SECONDS
        while True:
            status, answer = self.api(method, path, body, key)
            if status < 300:
                return answer
            error = answer["error"]
            if error["code"] != "too_many_at_once":
                assert status == 503, (method, path, status, answer)
                assert (error["message"], error["hint"]) == (SENTENCE, HINT)
            self.told.add(error["message"])
            assert time.monotonic() < deadline, f"{method} {path} is still refused"
            time.sleep(0.3)

    def launch(self, name: str) -> str:
        body = {"tenant": TENANT, "name": name, "image": "jupyter", "flavor": "a100-1"}
        return str(self.ask("POST", "workspaces/", body)["id"])

    def launch_many(self, prefix: str, count: int) -> list[Future[str]]:
        with ThreadPoolExecutor(count) as pool:
            return [pool.submit(self.launch, f"{prefix}-{number}") for number in range(count)]

    def phase(self, workspace: str) -> str:
        return str(self.ask("GET", f"workspaces/{workspace}/")["phase"])

    def sees(self, workspace: str, *phases: str) -> None:
        """Wait until the workspace is in one of these phases."""
        until(f"it is {phases}", lambda: self.phase(workspace) in phases, ENOUGH_SECONDS, 0.3)

    def sees_ready(self, workspaces: list[str]) -> None:
        for workspace in workspaces:
            self.sees(workspace, "ready")

    def delete(self, workspaces: list[str]) -> None:
        for workspace in workspaces:
            self.ask("DELETE", f"workspaces/{workspace}/?delete_disk=true")
        until("all is deleted", lambda: not self.ask("GET", f"workspaces/?tenant={TENANT}")["results"], 60)


# --- parts


HELD_SECONDS = 0.5
IN_THE_MIDST = f"""
SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'
  AND state_change < clock_timestamp() - interval '{HELD_SECONDS / 2} s'
"""


def signal_part(stack: Stack, part: str, number: signal.Signals) -> None:
    """Send a signal to every process of a part. Its supervisor does not notice a stop."""
    for found in leftovers.marked(stack.folder, part):
        with suppress(ProcessLookupError):
            os.kill(found.pid, number)


@contextmanager
def stopped(stack: Stack, part: str) -> Iterator[None]:
    """Make a part hang, but not within a transaction, whose locks everybody would wait for."""
    try:
        until(f"the {part} stops between transactions", lambda: stops(stack, part))
        yield
    finally:
        signal_part(stack, part, signal.SIGCONT)


def stops(stack: Stack, part: str) -> bool:
    signal_part(stack, part, signal.SIGSTOP)
    time.sleep(HELD_SECONDS)
    if stack.rows(IN_THE_MIDST):
        signal_part(stack, part, signal.SIGCONT)
        return False
    return True


# --- the database


def end_database(stack: Stack, how: signal.Signals) -> None:
    """End PostgreSQL (SIGINT: “fast”, SIGQUIT: “immediate”, SIGKILL: as the kernel would). Supervisor restarts it."""
    if how == signal.SIGKILL:
        stack.kill("postgres")
    else:
        os.kill(stack.pid("postgres"), how)


def end_connections(stack: Stack, query: str) -> int:
    """End connections whose last statement begins with `query`; return how many there were."""
    ended = stack.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND usename = current_user AND query LIKE %s",
        f"{query}%",
    )
    return len(ended)


END_ALL_BUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND usename = current_user AND pid <> ALL(%s)
"""


@contextmanager
def every_connection_taken(stack: Stack) -> Iterator[int]:
    """Open connections until none is free, ending Berth's own repeatedly until none is left. Yield the count."""
    with ExitStack() as opened:
        taken: list[psycopg.Connection[Json]] = []

        def all_are_ours() -> bool:
            try:
                while True:
                    taken.append(opened.enter_context(stack.database()))
            except psycopg.OperationalError as full:
                assert "too many" in str(full) or "remaining connection slots" in str(full), full
            ours = [connection.info.backend_pid for connection in taken]
            return not taken[0].execute(END_ALL_BUT, [ours]).fetchall()

        until("every connection is taken", all_are_ours)
        yield len(taken)


# --- what open pages hear


class Listener(threading.Thread):
    """Socket of a workspace's page; reconnects as a page does, from the last event that it has."""

    def __init__(self, stack: Stack, api: Client, workspace: str) -> None:
        super().__init__(daemon=True)
        self._stack, self._api, self.workspace = stack, api, workspace
        self.numbers: list[int] = []
        self.phase = ""
        self.connections = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            with suppress(ConnectionClosed, InvalidHandshake, OSError):
                self._listen()

    def _listen(self) -> None:
        status, ticket = self._api("POST", "ws-tickets/")
        if status >= 300:
            time.sleep(0.3)
            return
        after = self.numbers[-1] if self.numbers else 0
        path = f"/ws/workspaces/{self.workspace}/?after={after}&token={ticket['ticket']}"
        with connect(self._stack.address.replace("http", "ws") + path) as socket:
            self.connections += 1
            while not self.stopped.is_set():
                with suppress(TimeoutError):
                    self._take(json.loads(socket.recv(timeout=0.5)))

    def ends_with(self, last_event: int, phase: str) -> bool:
        return self.numbers == list(range(1, last_event + 1)) and self.phase == phase

    def _take(self, message: Json) -> None:
        if message["type"] == "event":
            self.numbers.append(message["event"]["id"])
        elif message["type"] == "workspace":
            self.phase = message["workspace"]["phase"]


@contextmanager
def listening(stack: Stack, person: Person, workspaces: list[str], each: int) -> Iterator[list[Listener]]:
    listeners = [Listener(stack, person.api, one) for one in workspaces for _ in range(each)]
    for listener in listeners:
        listener.start()
    until("all listen", lambda: all(listener.connections for listener in listeners), 60)
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.stopped.set()
        for listener in listeners:
            listener.join(30)
