"""Bring each workspace to a moment, kill a part of Berth there, and check that all recover by themselves.

Berth's code has no hooks for this: faults of the trial cluster hold its calls, and a trigger in the test's database
holds its transactions until the test releases a lock.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg

from portal.up.plan import REPOSITORY
from tests.e2e.stack import Client, Stack, until
from tests.proof import invariants
from tests.proof.faulty_world import simulated
from tests.proof.moments import PARTS, Case, Gated, Group, Held, Part, Stalled, Told

# Longest time from the kill until a workspace is ready, stopped, deleted, or failed with a code.
WITHIN_SECONDS = 60
NODES = """
nodes:
- name: gpu
  count: 4
  cpu: 256
  memory: 2Ti
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 16, compute: "8.0"}
"""
# The trigger waits for a lock if a gate matches the row that is written. `name`: of a workspace or a booking.
# `code`: of an event, or a claim's state, or the name of another table. `key`: the lock that the test holds.
GATES = """
CREATE TABLE proof_gate (name text, code text, key integer);
CREATE FUNCTION proof_wait() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE new_row jsonb := to_jsonb(NEW);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(4711, gate.key) FROM proof_gate gate
    LEFT JOIN workspaces_workspace w ON w.name = gate.name
    WHERE (w.id = coalesce(new_row->>'workspace_id', new_row->>'holder_id')::uuid
           OR gate.name = new_row->>'title')
      AND gate.code = coalesce(new_row->>'code', new_row->>'state', TG_TABLE_NAME);
  RETURN NULL;
END $$;
CREATE TRIGGER proof_gate AFTER INSERT ON workspaces_event FOR EACH ROW EXECUTE FUNCTION proof_wait();
CREATE TRIGGER proof_gate AFTER UPDATE ON quotas_claim FOR EACH ROW EXECUTE FUNCTION proof_wait();
CREATE TRIGGER proof_gate AFTER UPDATE ON quotas_booking FOR EACH ROW EXECUTE FUNCTION proof_wait();
"""
GROUND = """
UPDATE quotas_quota SET nominal_gpus = 64;
INSERT INTO workspaces_image (id, slug, name, description, reference, offers_jupyter, offers_ssh, uid, gid,
                              username, home, shell, is_active)
  SELECT gen_random_uuid(), 'broken', 'Broken', '', 'No Name Of An Image', offers_jupyter, offers_ssh, uid, gid,
         username, home, shell, is_active FROM workspaces_image WHERE slug = 'jupyter';
"""
# Preempts a claim, as a policy of quotas would. This process is never killed.
RECLAIM = """
import sys
from django.db import transaction
from quotas import admission, signals
from quotas.models import Claim
from quotas.reclaim import ASKED_BACK
for line in sys.stdin:
    with transaction.atomic():
        claim = Claim.objects.select_related("pool").get(pk=line.strip())
        admission.lock(claim.pool.cluster_id)
        signals.claim_to_stop.send(sender=Claim, claim=claim, code=ASKED_BACK)
"""
Row = dict[str, Any]


class Ground:
    """A running Berth with room for many workspaces, which are brought to their moments."""

    database: psycopg.Connection[Row]

    def __init__(self, stack: Stack, reclaim: Callable[[str], None]):
        self.stack, self.reclaim = stack, reclaim
        self._opened = ExitStack()
        self.connect()
        self.api = stack.client(stack.token("alice", "read", "workspaces"))
        self.numbers = itertools.count(1)
        self.pool = ThreadPoolExecutor(8)

    def connect(self) -> None:
        self._opened.close()
        self.database = self._opened.enter_context(self.stack.database(read_only=False))

    def close(self) -> None:
        self._opened.close()
        self.pool.shutdown()

    def one(self, query: str, *values: Any) -> Row | None:
        return self.database.execute(query.encode(), values or None).fetchone()

    # --- gates: see GATES

    def close_gate(self, name: str, code: str, key: int) -> None:
        self.database.execute("SELECT pg_advisory_lock(4711, %s)", [key])
        self.database.execute("INSERT INTO proof_gate VALUES (%s, %s, %s)", [name, code, key])

    def waits_at_gate(self, key: int) -> bool:
        waits = "SELECT 1 FROM pg_locks WHERE classid = 4711 AND objid = %s AND NOT granted"
        return self.one(waits, key) is not None

    def open_gate(self, key: int) -> None:
        self.database.execute("DELETE FROM proof_gate WHERE key = %s", [key])
        self.database.execute("SELECT pg_advisory_unlock(4711, %s)", [key])


@contextmanager
def ground(folder: Path, *, nodes: str = NODES, rows: str = GROUND, **settings: str) -> Iterator[Ground]:
    stack = simulated(folder, nodes, **settings)
    try:
        stack.start()
        with reclaiming(stack) as reclaim, closing(Ground(stack, reclaim)) as berth:
            berth.database.execute(GATES)
            berth.database.execute(rows.encode())
            yield berth
    finally:
        stack.stop()


@contextmanager
def reclaiming(stack: Stack) -> Iterator[Callable[[str], None]]:
    command = [sys.executable, "manage.py", "shell", "-c", RECLAIM]
    policy = subprocess.Popen(command, cwd=REPOSITORY, env=stack.environ, stdin=subprocess.PIPE, text=True)
    assert policy.stdin is not None
    lines = policy.stdin
    yield lambda claim: print(claim, file=lines, flush=True)
    lines.close()
    policy.wait(WITHIN_SECONDS)


def insist(
    api: Client, method: str, path: str, body: Any = None, *, within_seconds: float = WITHIN_SECONDS
) -> Any:
    """Repeat a request with the same key until it succeeds, however often the web process dies."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            status, answer = api(method, path, body, headers)
            if status < 400 or (method == "DELETE" and status == 404):
                return answer
        except (OSError, HTTPException) as error:
            status, answer = 0, error
        assert time.monotonic() < deadline, (status, answer)
        assert status in (0, 409, 429) or status >= 500, (status, answer)
        time.sleep(0.1)


class Lane:
    """A workspace that is brought to its moment, and judged after the kill."""

    def __init__(self, ground: Ground, case: Case) -> None:
        self.ground, self.case = ground, case
        self.number = next(ground.numbers)
        self.name = f"k{self.number}"
        self.last_event = 0
        self.answer: Future[Any] | None = None
        self.faults: list[int] = []

    # --- up to the moment

    def launch(self) -> None:
        image = "broken" if self.case.operation.ends == "failed" else "jupyter"
        body = {"tenant": "demo", "name": self.name, "image": image, "flavor": "a100-1", "disk_mib": 64}
        self._ask("POST", "workspaces/", body)

    def act(self) -> None:
        match self.case.operation.name:
            case "launch" | "failed start":
                self.launch()
            case "restart" | "stop" as verb:
                self._ask("POST", f"workspaces/{self.id}/{verb}/")
            case "delete":
                self._ask("DELETE", f"workspaces/{self.id}/?delete_disk=true")
            case "reclaim":
                self.ground.reclaim(str(self.row()["run"]))

    def _ask(self, method: str, path: str, body: Any = None) -> None:
        self.answer = self.ground.pool.submit(insist, self.ground.api, method, path, body)

    def arm(self) -> None:
        """Set up the fault or the gate that holds the workspace at its moment."""
        stack, moment = self.ground.stack, self.case.moment
        match moment:
            case Held():
                is_disk = moment.resource == "persistentvolumeclaims"
                name = self.disk if is_disk else f"ws-{self.id}*"
                match = {"verb": moment.verb, "resource": moment.resource, "name": name}
                self.faults.append(stack.fault(hold=moment.when, match=match))
            case Stalled():
                claim = {"claim": self.disk}
                self.faults.append(stack.fault(volume=moment.volume, match=claim, seconds=600))
            case Gated():
                self.ground.close_gate(self.name, moment.code, self.number)

    def is_there(self) -> bool:
        match self.case.moment:
            case Held() | Stalled():
                hits = self.ground.stack.hits()
                return all(hits[fault] for fault in self.faults)
            case Gated():
                return self.ground.waits_at_gate(self.number)
            case Told(code="released"):
                return bool(self._written("quotas_claim c ON c.holder_id = w.id AND c.state = 'released'"))
            case Told(code):
                event = f"workspaces_event e ON e.workspace_id = w.id AND e.code = '{code}'"
                return bool(self._written(f"{event} AND e.number > {self.last_event}"))

    def _written(self, join: str) -> Row | None:
        return self.ground.one(
            f"SELECT 1 FROM workspaces_workspace w JOIN {join} WHERE w.name = %s", self.name
        )

    def release(self) -> None:
        """End the fault or open the gate that holds the workspace."""
        if self.faults:
            self.ground.stack.end_faults(*self.faults)
            self.faults = []
        if isinstance(self.case.moment, Gated):
            self.ground.open_gate(self.number)

    # --- afterwards

    def row(self) -> Row:
        found = self.ground.one("SELECT * FROM workspaces_workspace WHERE name = %s", self.name)
        assert found is not None, f"{self.name} is not there"
        return found

    @property
    def id(self) -> str:
        return str(self.row()["id"])

    @property
    def disk(self) -> str:
        """Name of the PVC of its disk: its home is the person's, and there from the first workspace on."""
        disk = "SELECT volume_id FROM storage_mount WHERE holder = %s AND path = '/disk'"
        found = self.ground.one(disk, self.id)
        assert found is not None, f"{self.name} has no disk"
        return f"vol-{found['volume_id']}"

    @property
    def phase(self) -> str:
        found = self.ground.one(
            "SELECT phase, deleted_at FROM workspaces_workspace WHERE name = %s", self.name
        )
        return "nothing" if found is None else "deleted" if found["deleted_at"] else found["phase"]

    def wrong(self) -> list[str]:
        if self.phase != self.case.operation.ends:
            return [f"is {self.phase}, not {self.case.operation.ends}"]
        return invariants.check(self.ground.stack, [self.id])

    def clear_away(self) -> None:
        """Delete the workspace to make room. The last test checks that it is gone."""
        if self.phase not in ("nothing", "deleted"):
            self._ask("DELETE", f"workspaces/{self.id}/?delete_disk=true")


# --- one kill


def strike(ground: Ground, group: Group, found: Callable[[str, str], None], *killed: Part) -> None:
    """Kill these parts while all of the group are at their moments; each workspace has to recover."""
    with set_out(ground, group) as lanes:
        kill = ground.stack.about_to_kill(*killed)
        bring_last(lanes)
        kill()
    judge(lanes, " + ".join(killed), found)


def cut_power(ground: Ground, group: Group, found: Callable[[str, str], None]) -> None:
    """Kill everything while all of the group are at their moments, and start Berth again."""
    with set_out(ground, group) as lanes:
        bring_last(lanes)
        ground.stack.kill_everything()
        ground.stack.start()
        ground.connect()
    judge(lanes, "everything", found)


@contextmanager
def set_out(ground: Ground, group: Group) -> Iterator[list[Lane]]:
    """Hold the workspaces that can wait at their moments until the context ends."""
    lanes = [Lane(ground, case) for case in group]
    try:
        prepare(ground, [lane for lane in lanes if lane.case.operation.begins == "ready"])
        waiting = [lane for lane in lanes if not lane.case.is_trigger]
        bring(
            ground, [lane for lane in waiting if not lane.case.takes_a_look]
        )  # while a thread is free for them
        bring(ground, [lane for lane in waiting if lane.case.takes_a_look])
        yield lanes
    finally:
        for lane in lanes:
            lane.release()


def bring_last(lanes: list[Lane]) -> None:
    for lane in lanes:
        if lane.case.is_trigger:
            lane.arm()
            lane.act()
            until(f"{lane.case}: its moment", lane.is_there, WITHIN_SECONDS, pause=0.002)


def prepare(ground: Ground, lanes: list[Lane]) -> None:
    """Wait until all parts run, and make these workspaces ready."""
    until("all parts run", lambda: all(ground.stack.runs(part) for part in PARTS))
    for lane in lanes:
        lane.launch()
    for lane in lanes:
        until(f"{lane.name} is ready", lambda: lane.phase == "ready", WITHIN_SECONDS)  # noqa: B023
        lane.last_event = lane.row()["last_event"]


def bring(ground: Ground, lanes: list[Lane]) -> None:
    """Bring these to their moments. The pool's row is locked until new workspaces have the ids that faults name."""
    with ground.stack.database(read_only=False) as held, held.transaction():
        held.execute("SELECT 1 FROM quotas_pool FOR NO KEY UPDATE")
        new = [lane for lane in lanes if lane.case.operation.begins == "nothing"]
        for lane in new:
            lane.act()
        for lane in new:
            until(f"{lane.name} is written", lambda: lane.phase != "nothing")  # noqa: B023
        for lane in lanes:
            lane.arm()
    for lane in lanes:
        if lane not in new:
            lane.act()
    for lane in lanes:
        until(f"{lane.case}: its moment", lane.is_there, WITHIN_SECONDS, pause=0.02)


def judge(lanes: list[Lane], killed: str, found: Callable[[str, str], None]) -> None:
    """Record how long each workspace took to recover; fail with what is still wrong at the deadline."""
    began = time.monotonic()
    pending, wrong = list(lanes), dict[Lane, list[str]]()
    while pending and time.monotonic() < began + WITHIN_SECONDS:
        for lane in list(pending):
            wrong[lane] = lane.wrong()
            if not wrong[lane]:
                pending.remove(lane)
                what = f"{lane.phase} after {time.monotonic() - began:.1f} s"
                found(f"{killed} killed: {lane.case}", what)
        time.sleep(0.1)
    for lane in pending:
        found(f"{killed} killed: {lane.case}", "; ".join(wrong[lane]))
    for lane in lanes:
        if lane.answer is not None and lane not in pending:
            lane.answer.result(WITHIN_SECONDS)
        lane.clear_away()
    assert not pending, "\n".join(f"{lane.case}: {sentence}" for lane in pending for sentence in wrong[lane])
