"""An upgrade from the version before, and the way back, while people work: no request fails, and no run is touched."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portal.up.plan import REPOSITORY
from tests.e2e.scene import Reader
from tests.e2e.stack import PASSWORD, Client, Stack, until
from tests.proof.host import Person, listening
from tests.proof.invariants import hold
from tests.proof.killing import insist
from tests.proof.two_versions import (
    Newer,
    Traffic,
    earlier_tree,
    last_migrations,
    roll_back,
    roll_forward,
    steady,
)

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1500)]

WORKSPACES, JOBS, PARTS, VOLUMES = 100, 20, 6, 5
READS_A_SECOND, LAUNCH_EVERY_SECONDS = 8, 2.0
# A part of a job takes about as long as a pod to start: their jobs last through the upgrade.
NODES = """
nodes:
- {name: gpu, count: 4, cpu: 256, memory: 2Ti, pods: 250,
   gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 16, compute: "8.0"}}
- {name: cpu, count: 2, cpu: 256, memory: 2Ti, pods: 250}
images: {"berth.local/jupyter:1": {}, "berth.local/counts:1": {says: ["berth: progress=1.0"]}}
played: {start_seconds: 4}
"""
GROUND = """
UPDATE quotas_quota SET nominal_gpus = 64;
INSERT INTO workspaces_image SELECT (jsonb_populate_record(i, jsonb_build_object(
  'id', gen_random_uuid(), 'slug', 'counts', 'reference', 'berth.local/counts:1'))).* FROM workspaces_image i;
"""
PAGES = ("/", "/jobs/", "/volumes/", "/gpus/", "/usage/", "/notices/", "/admin/")
PATHS = ("workspaces/?limit=20", "jobs/?limit=20", "volumes/", "notices/", "me/")
# A part that succeeded once, by Berth's rows, and by the events of its job.
NOT_ONCE = """
SELECT j.name, p.index, p.phase, (SELECT count(*) FROM jobs_attempt a WHERE a.part_id = p.id) AS attempts
FROM jobs_part p JOIN jobs_job j ON j.id = p.job_id
WHERE p.phase <> 'succeeded' OR (SELECT count(*) FROM jobs_attempt a WHERE a.part_id = p.id) <> 1
"""


@contextmanager
def earlier(folder: Path) -> Iterator[Stack]:
    folder.chmod(0o711)
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    tree = earlier_tree(folder / "earlier")
    more = {"BERTH_DEVCLUSTER_PODS": "played", "BERTH_DEVCLUSTER_NODES": str(nodes)}
    stack = Stack(folder / "state", BERTH_LAUNCHES_PER_MINUTE="10000", **more)
    stack.repository = tree
    stack.start()
    try:
        with stack.database(read_only=False) as database:
            database.execute(GROUND)
        yield stack
    finally:
        stack.stop()


def launch_all(api: Client) -> list[str]:
    def launch(number: int) -> str:
        flavor = "a100-1" if number % 2 else "cpu-small"
        body = {"tenant": "demo", "name": f"before-{number}", "image": "jupyter", "flavor": flavor}
        return str(insist(api, "POST", "workspaces/", body)["id"])

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(launch, range(WORKSPACES)))


def submit_all(api: Client) -> list[str]:
    body = {"tenant": "demo", "image": "counts", "flavor": "cpu-small", "command": ["count"], "notify": False}
    more = {"completions": PARTS, "parallelism": 1}
    return [
        str(insist(api, "POST", "jobs/", {**body, **more, "name": f"job-{n}"})["id"]) for n in range(JOBS)
    ]


def make_volumes(api: Client, first: int) -> None:
    for number in range(first, first + VOLUMES):
        body = {"tenant": "demo", "name": f"data-{number}", "kind": "dataset", "size_mib": 64}
        status, made = api("POST", "volumes/", body)
        assert status == 201, made


def all_are(stack: Stack, phase: str, workspaces: list[str]) -> bool:
    query = "SELECT count(*) AS count FROM workspaces_workspace WHERE phase = %s AND id = ANY(%s::uuid[])"
    return bool(stack.rows(query, phase, workspaces)[0]["count"] == len(workspaces))


def untouched(stack: Stack, workspaces: list[str]) -> dict[str, Any]:
    """Return what must stay as it is of the pods of these workspaces, and the uids of their other objects."""
    found: dict[str, Any] = {}
    for kind in ("Pod", "Service", "Secret", "PersistentVolumeClaim"):
        for body in stack.in_cluster(kind):
            of = body["metadata"]
            if (
                kind == "PersistentVolumeClaim"
                or of.get("labels", {}).get("berth.dev/workspace") in workspaces
            ):
                pod = (body["spec"], body["status"]["containerStatuses"]) if kind == "Pod" else ()
                found[f"{kind} {of['name']}"] = (of["uid"], of.get("deletionTimestamp"), *pod)
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name, what in before.items() if after.get(name) != what]


def test_an_upgrade_and_the_way_back_touch_nothing_that_runs(tmp_path: Path, found: Any) -> None:
    with earlier(tmp_path) as berth, Newer(berth) as newer:
        scopes = ("read", "workspaces", "jobs", "volumes")
        alice, bob, reader = (berth.client(berth.token(who, *scopes)) for who in ("alice", "bob", "alice"))
        page = Reader(berth.address, "admin", PASSWORD)
        workspaces = launch_all(alice)
        make_volumes(alice, 0)
        until("all are ready", partial(all_are, berth, "ready", workspaces), 400, 1)
        jobs = submit_all(alice)
        paths = (*PATHS, f"workspaces/{workspaces[0]}/", f"jobs/{jobs[0]}/")
        traffic = Traffic(reader, bob, paths)
        before = untouched(berth, workspaces)
        assert len([name for name in before if name.startswith("Pod")]) == WORKSPACES

        def lead_to(address: str) -> None:
            berth.address = alice.address = bob.address = reader.address = page.address = address

        reads, launches = (traffic.read, 1 / READS_A_SECOND), (traffic.launch, LAUNCH_EVERY_SECONDS)
        with listening(berth, Person(alice), workspaces[:4], 1) as listeners, steady(reads, launches):
            berth.repository = REPOSITORY
            berth.manage("migrate", "--verbosity", "0")
            works(berth, page, traffic, "the old version on the new tables")
            make_volumes(alice, VOLUMES)
            roll_forward(berth, newer, lead_to)
            works(berth, page, traffic, "the new version")
            assert changed(before, untouched(berth, workspaces)) == []
            make_volumes(alice, 2 * VOLUMES)

            roll_back(berth, newer, lead_to)
            works(berth, page, traffic, "the old version again")
            take_tables_back(berth, tmp_path / "earlier")
            works(berth, page, traffic, "the old version on its own tables")
            assert changed(before, untouched(berth, workspaces)) == []

            for workspace in workspaces[:4]:
                alice("POST", f"workspaces/{workspace}/stop/")
            until("all jobs are over", lambda: phases(berth, jobs) == {"succeeded"}, 300, 1)
            last = "SELECT id, last_event FROM workspaces_workspace WHERE id = ANY(%s::uuid[])"
            until("they are stopped", partial(all_are, berth, "stopped", workspaces[:4]), 120)
            events = {str(row["id"]): row["last_event"] for row in berth.rows(last, workspaces[:4])}
            for listener in listeners:
                ended = partial(listener.ends_with, events[listener.workspace], "stopped")
                until(f"the page of {listener.workspace} knows", ended, 30)
                assert listener.connections >= 3  # it moved with each web process
        assert traffic.failed == []
        assert berth.rows(NOT_ONCE) == []
        until("all volumes are made", lambda: not berth.rows(NOT_MADE), 60)
        hold(berth, 60, only=[*workspaces, *traffic.launched])
        found(
            "upgrade and back", f"{traffic.answers} requests, {len(traffic.launched)} launches, none failed"
        )


NOT_MADE = "SELECT id FROM storage_volume WHERE kind = 'dataset' AND size_mib <> requested_mib"


def phases(stack: Stack, jobs: list[str]) -> set[str]:
    rows = stack.rows("SELECT DISTINCT phase FROM jobs_job WHERE id = ANY(%s::uuid[])", jobs)
    return {row["phase"] for row in rows}


def works(stack: Stack, page: Reader, traffic: Traffic, what: str) -> None:
    """Read pages, and wait until what was launched up to now is ready."""
    until(f"{what}: all parts are well", stack.is_ready, 90)
    for path in PAGES:
        page.text(path)
    launched = list(traffic.launched)
    until(f"{what}: launches are ready", partial(all_are, stack, "ready", launched), 120, 0.5)
    assert traffic.failed == []


def take_tables_back(stack: Stack, tree: Path) -> None:
    """Take back the migrations that the earlier version does not know."""
    old, new = last_migrations(tree), last_migrations(REPOSITORY)
    for app in new:
        if old.get(app) != new[app]:
            stack.manage("migrate", app, old.get(app, "zero"), "--verbosity", "0")
