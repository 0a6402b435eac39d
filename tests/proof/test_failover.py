"""The database's primary is lost under load and its standby takes over: nothing is lost, doubled or led twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from clusters.watch.leadership import LOCK as WATCH
from tests.e2e.stack import Stack, until
from tests.proof.faulty_world import world_in
from tests.proof.host import TENANT, Person, listening
from tests.proof.invariants import hold
from tests.proof.replicated import Pair, replicated
from tests.proof.two_versions import Newer
from workloads.logs.collector import LOCK as COLLECTION

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(400)]

WITHOUT_PRIMARY_SECONDS = 2.0
LAUNCHES = 6
LEADERS = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) + objid::bigint = %s
"""
BEATING = "SELECT pid FROM vitals_process WHERE part = %s AND seen_at > now() - interval '6 s'"
EVENTS = "SELECT id, last_event, name FROM workspaces_workspace WHERE deleted_at IS NULL"


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    folder.chmod(0o711)
    with replicated(folder) as servers:
        yield servers


def test_a_standby_takes_over_in_the_midst_of_launches(
    pair: Pair, tmp_path: Path, found: Callable[[str, str], None]
) -> None:
    with world_in(tmp_path, TENANT, DATABASE_URL=pair.url) as world, Newer(world.stack) as stand_by:
        berth = world.stack
        for part in ("watcher", "collector"):
            stand_by.start(part)
        alice = Person(world.people["alice"])
        first = [each.result() for each in alice.launch_many("first", 2)]
        alice.sees_ready(first)
        with listening(berth, alice, first, 2) as listeners, ThreadPoolExecutor(1) as pool:
            before = alice.launch_many("before", LAUNCHES)
            meanwhile = pool.submit(alice.launch_many, "meanwhile", LAUNCHES)
            pair.kill_primary()
            time.sleep(WITHOUT_PRIMARY_SECONDS)
            pair.promote()
            promoted = time.monotonic()
            until("all parts are well", berth.is_ready, 60)
            seconds = time.monotonic() - promoted
            launched = [each.result() for each in (*before, *meanwhile.result())]
            alice.sees_ready(launched)
            assert leads_once(berth)
            for workspace in first:
                alice.ask("POST", f"workspaces/{workspace}/stop/")
                alice.sees(workspace, "stopped")
            rows = berth.rows(EVENTS)
            last = {str(row["id"]): row["last_event"] for row in rows}
            for listener in listeners:
                ended = partial(listener.ends_with, last[listener.workspace], "stopped")
                until("the page heard all of it", ended, 30)
        assert set(Counter(row["name"] for row in rows).values()) == {1}
        assert set(last) == {*first, *launched}
        hold(berth, 60)
        found(
            "PostgreSQL failover", f"{len(launched)} launches ready; all parts well {seconds:.0f} s after it"
        )


def leads_once(stack: Stack) -> bool:
    """Return True once exactly one process leads each part, of the two that run."""
    for lock, part in ((WATCH, "watcher"), (COLLECTION, "collector")):
        until(f"one {part} leads", lambda: len(stack.rows(LEADERS, lock)) == 1)  # noqa: B023
        until(f"one {part} is at work", lambda: len(stack.rows(BEATING, part)) == 1)  # noqa: B023
    return True
