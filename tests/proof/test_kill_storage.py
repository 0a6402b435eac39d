"""Kills in the middle of work on volumes: at each call of the watcher, and around each transaction of web.

The calls of an operation are learnt from an undisturbed run of it, so that none is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest

from devcluster.testing.kube import Kube
from tests.e2e.stack import Client, until
from tests.proof.killing import WITHIN_SECONDS, Ground, ground, insist
from tests.proof.moments import PARTS
from tests.sampling import rare

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

NODES = "nodes:\n- {name: only, cpu: 8, memory: 32Gi}\n"
# The person's change waits for a lock if a gate has the volume's name.
ROWS = """
CREATE FUNCTION proof_storage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(4711, gate.key) FROM proof_gate gate JOIN storage_volume v ON v.name = gate.name
    WHERE v.id = (to_jsonb(NEW)->>TG_ARGV[0])::uuid;
  RETURN NULL;
END $$;
CREATE TRIGGER proof_storage_made AFTER INSERT ON storage_volume
  FOR EACH ROW EXECUTE FUNCTION proof_storage('id');
CREATE TRIGGER proof_storage_changed AFTER UPDATE ON storage_volume FOR EACH ROW
  WHEN (OLD.requested_mib <> NEW.requested_mib OR OLD.bin_until IS DISTINCT FROM NEW.bin_until)
  EXECUTE FUNCTION proof_storage('id');
CREATE TRIGGER proof_storage_taken AFTER INSERT ON storage_snapshot
  FOR EACH ROW EXECUTE FUNCTION proof_storage('volume_id');
"""
WRITES = ("create", "patch", "update", "delete")
RESOURCES = ("persistentvolumeclaims", "persistentvolumes", "volumesnapshots", "volumesnapshotcontents")
MOVING = """
SELECT 'volume ' || name || ' ' || phase || ' ' || problem AS what FROM storage_volume
  WHERE deleted_at IS NULL AND (phase IN ('pending', 'growing', 'deleting') OR dirty_since IS NOT NULL)
UNION ALL SELECT 'snapshot ' || phase || ' ' || problem FROM storage_snapshot
  WHERE deleted_at IS NULL AND (phase IN ('pending', 'deleting') OR is_passing)
"""
THERE = """
SELECT 'PersistentVolumeClaim' AS kind, 'vol-' || id AS name FROM storage_volume WHERE deleted_at IS NULL
UNION ALL SELECT 'PersistentVolume', bound_to FROM storage_volume WHERE deleted_at IS NULL
UNION ALL SELECT 'VolumeSnapshot', 'snap-' || id FROM storage_snapshot WHERE deleted_at IS NULL
UNION ALL SELECT 'VolumeSnapshotContent', content FROM storage_snapshot WHERE deleted_at IS NULL
"""
PATHS = {
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "VolumeSnapshot": "/apis/snapshot.storage.k8s.io/v1/volumesnapshots",
    "VolumeSnapshotContent": "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents",
}
SECONDS = 2 * WITHIN_SECONDS


@dataclass(frozen=True)
class Operation:
    """What a person asks of a volume, and what the rows say once it is done: a query with one row."""

    method: str
    path: str  # after the volume's
    body: Any
    done: str
    has_copies: bool = False


MADE = {"tenant": "demo", "kind": "dataset", "size_mib": 128}
ONE_SNAPSHOT = (
    "SELECT 1 FROM storage_snapshot WHERE volume_id = %s AND deleted_at IS NULL HAVING count(*) = 1"
)
OPERATIONS = {
    "create": Operation("POST", "", MADE, "SELECT 1 FROM storage_volume WHERE id = %s AND phase = 'ready'"),
    "grow": Operation(
        "PATCH", "", {"size_mib": 256}, "SELECT 1 FROM storage_volume WHERE id = %s AND size_mib = 256"
    ),
    "clone": Operation(
        "POST",
        "clone/",
        {"name": "copy"},
        "SELECT 1 FROM storage_volume WHERE id <> %s AND name = 'copy' AND deleted_at IS NULL HAVING count(*) = 1",
    ),
    "snapshot": Operation("POST", "snapshot/", {}, ONE_SNAPSHOT),
    "publish": Operation(
        "POST", "publish/", {}, ONE_SNAPSHOT.replace("HAVING", "AND number = 1 HAVING"), has_copies=False
    ),
    "bin": Operation(
        "DELETE", "", None, "SELECT 1 FROM storage_volume WHERE id = %s AND bin_until IS NOT NULL"
    ),
    "delete": Operation(
        "DELETE",
        "?now=true",
        None,
        "SELECT 1 FROM storage_volume WHERE id = %s AND deleted_at IS NOT NULL",
        has_copies=True,
    ),
}


@dataclass(frozen=True)
class Moment:
    is_there: Callable[[], Any]
    let_go: Callable[[], object] = lambda: None


@dataclass
class Storage:
    ground: Ground
    api: Client
    kube: Kube
    numbers: Iterator[int]

    def prepare(self, operation: Operation) -> tuple[str, str]:
        """Return name and id of a volume on which the operation can be asked for; of a new one the id is empty."""
        until("all parts run", lambda: all(self.ground.stack.runs(part) for part in PARTS))
        name = f"data {next(self.numbers)}"
        if operation.path == "" and operation.method == "POST":
            return name, ""
        made = insist(self.api, "POST", "volumes/", MADE | {"name": name})
        self.is_settled()
        if operation.has_copies:
            insist(self.api, "POST", f"volumes/{made['id']}/publish/", {})
            insist(self.api, "POST", f"volumes/{made['id']}/snapshot/", {})
            self.is_settled()
        return name, made["id"]

    def ask(self, operation: Operation, name: str, volume: str) -> Any:
        path = f"volumes/{volume}/{operation.path}" if volume else "volumes/"
        body = operation.body if volume else operation.body | {"name": name}
        return insist(self.api, operation.method, path, body)

    def is_settled(self) -> None:
        """Wait until nothing moves and the cluster has what the rows name, and nothing else."""
        until("nothing moves", lambda: not self.moving(), SECONDS)
        until("the cluster is as the rows say", lambda: self.differences() == {}, SECONDS)

    def moving(self) -> list[str]:
        return [row["what"] for row in self.ground.stack.rows(MOVING)]

    def differences(self) -> dict[str, Any]:
        wanted: dict[str, set[str]] = {kind: set() for kind in PATHS}
        for row in self.ground.stack.rows(THERE):
            wanted[row["kind"]].add(row["name"])
        found = {kind: self.names(kind) ^ names for kind, names in wanted.items()}
        return {kind: names for kind, names in found.items() if names}

    def names(self, kind: str) -> set[str]:
        status, listed = self.kube.call("GET", PATHS[kind])
        assert status == 200, listed
        return {body["metadata"]["name"] for body in listed["items"]}

    def judge(self, operation: Operation, volume: str) -> None:
        self.is_settled()
        assert self.ground.one(operation.done, volume), f"{operation} is not done once"

    def clear_away(self) -> None:
        for row in self.ground.stack.rows(
            "SELECT id FROM storage_volume WHERE deleted_at IS NULL AND NOT is_version"
        ):
            insist(self.api, "DELETE", f"volumes/{row['id']}/?now=true")
        self.is_settled()
        assert self.ground.one("SELECT 1 FROM storage_volume WHERE deleted_at IS NULL") is None

    def strike(self, operation: Operation, place: tuple[str, str], moment: Moment, part: str) -> str:
        """Ask for the operation, kill a part at the moment, and let go what was held. Return the volume's id."""
        kill = self.ground.stack.about_to_kill(part)
        asked = self.ground.pool.submit(self.ask, operation, *place)
        until(f"the moment of {operation.path or operation.method}", moment.is_there, SECONDS, pause=0.005)
        kill()
        moment.let_go()
        answer = asked.result(SECONDS)
        return place[1] or str(answer["id"])


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with ground(tmp_path_factory.mktemp("kill-storage"), nodes=NODES, rows=ROWS) as berth:
        api = berth.stack.client(berth.stack.token("alice", "read", "volumes"))
        yield Storage(berth, api, Kube(berth.stack.folder / "kubeconfig"), count(1))


def calls_of(storage: Storage, operation: Operation) -> list[tuple[str, str]]:
    """Return the writing calls that an undisturbed run of the operation makes: verbs and resources."""
    stack, place = storage.ground.stack, storage.prepare(operation)
    counted = {
        stack.fault(latency_ms=0, match={"verb": verb, "resource": kind, "user_agent": "berth*"}): (
            verb,
            kind,
        )
        for verb in WRITES
        for kind in RESOURCES
    }
    answer = storage.ask(operation, *place)
    storage.judge(operation, place[1] or answer["id"])
    found = [counted[fault] for fault, hits in stack.hits().items() if hits and fault in counted]
    stack.end_faults(*counted)
    storage.clear_away()
    return found


@pytest.mark.parametrize(
    "name", ["snapshot", *map(rare, (name for name in OPERATIONS if name not in ("snapshot", "bin")))]
)
def test_the_watcher_is_killed_at_each_of_its_calls(name: str, storage: Storage) -> None:
    operation, stack = OPERATIONS[name], storage.ground.stack
    calls = calls_of(storage, operation)
    assert calls
    for verb, resource in calls:
        for when in ("before", "after"):
            place = storage.prepare(operation)
            match = {"verb": verb, "resource": resource, "user_agent": "berth*"}
            fault = stack.fault(hold=when, match=match)
            held = Moment(partial(was_hit, storage, fault), partial(stack.end_faults, fault))
            volume = storage.strike(operation, place, held, "watcher")
            storage.judge(operation, volume)
            storage.clear_away()


@pytest.mark.parametrize("name", ["publish", *map(rare, (name for name in OPERATIONS if name != "publish"))])
@pytest.mark.parametrize("part", ["web", rare("worker")])
def test_what_a_killed_process_had_begun_is_done_once(name: str, part: str, storage: Storage) -> None:
    """Before the commit web dies with its transaction; after it, its answer is lost and asked for again."""
    operation, berth = OPERATIONS[name], storage.ground
    for when in ("before", "after"):
        place = storage.prepare(operation)
        moment = Moment(partial(is_written, berth, name, place))
        if when == "before":
            gate = next(storage.numbers)
            berth.close_gate("copy" if name == "clone" else place[0], "", gate)
            moment = Moment(partial(berth.waits_at_gate, gate), partial(berth.open_gate, gate))
        volume = storage.strike(operation, place, moment, part)
        storage.judge(operation, volume)
        storage.clear_away()


def was_hit(storage: Storage, fault: int) -> bool:
    return bool(storage.ground.stack.hits().get(fault))


def is_written(berth: Ground, name: str, place: tuple[str, str]) -> Any:
    queries = {
        "create": ("SELECT 1 FROM storage_volume WHERE name = %s", place[0]),
        "clone": ("SELECT 1 FROM storage_volume WHERE name = %s AND deleted_at IS NULL", "copy"),
        "grow": ("SELECT 1 FROM storage_volume WHERE id = %s AND requested_mib = 256", place[1]),
        "bin": ("SELECT 1 FROM storage_volume WHERE id = %s AND bin_until IS NOT NULL", place[1]),
        "delete": ("SELECT 1 FROM storage_volume WHERE id = %s AND bin_until IS NOT NULL", place[1]),
    }
    query, value = queries.get(name, ("SELECT 1 FROM storage_snapshot WHERE volume_id = %s", place[1]))
    return berth.one(query, value)
