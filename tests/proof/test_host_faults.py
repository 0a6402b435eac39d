"""PostgreSQL restarted, full, slow or cut off, and parts that hang: delays, but no losses, and people are notified."""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from portal.up.__main__ import PARTS
from portal.up.processes import SUPERVISOR
from tests.e2e.stack import Stack, until
from tests.proof.faulty_world import world_in
from tests.proof.host import (
    SENTENCE,
    TENANT,
    Person,
    end_connections,
    end_database,
    every_connection_taken,
    listening,
    stopped,
)
from tests.proof.invariants import hold
from tests.sampling import rare

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

WRITTEN_BY_THE_CLOCK = (
    ("django_q_ormq", "lock"),
    ("workspaces_workspace", "dirty_since"),
    ("workspaces_workspace", "step_since"),
    ("quotas_pool", "pass_queued_at"),
    ("quotas_claim", "created_at"),
    ("vitals_process", "seen_at"),
    ("clusters_watcher", "seen_at"),
)
LAST_EVENTS = "SELECT id, last_event FROM workspaces_workspace"
Found = Callable[[str, str], None]


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with world_in(tmp_path_factory.mktemp("host"), TENANT) as world:
        yield world.stack


@pytest.fixture
def alice(berth: Stack) -> Iterator[Person]:
    person = Person(berth.client(berth.token("alice", "read", "workspaces")))
    yield person
    person.delete([each["id"] for each in person.ask("GET", f"workspaces/?tenant={TENANT}")["results"]])


def ready(berth: Stack, path: str = "/readyz") -> dict[str, str]:
    """Return what is wrong, by part; nothing if the answer is 200."""
    try:
        urllib.request.urlopen(berth.address + path, timeout=60).close()
    except urllib.error.HTTPError as answer:
        checks = json.loads(answer.read())["checks"]
        return {part: words for part, words in checks.items() if words != "ok"}
    return {}


@pytest.mark.parametrize(
    ("words", "how"),
    [rare("fast", signal.SIGINT), rare("immediate", signal.SIGQUIT), ("killed", signal.SIGKILL)],
)
def test_the_database_is_restarted_in_the_midst_of_launches(
    berth: Stack, alice: Person, found: Found, words: str, how: signal.Signals
) -> None:
    before = alice.launch_many(f"before-{words}", 3)
    end_database(berth, how)
    meanwhile = alice.launch_many(f"meanwhile-{words}", 3)
    launched = [each.result() for each in (*before, *meanwhile)]
    alice.sees_ready(launched)
    hold(berth, 60)
    until("all parts are well", lambda: not ready(berth), 60)
    told = f"told: {SENTENCE}" if alice.told else "nobody was refused"
    found(f"PostgreSQL {words}", f"6 launches ready, none lost or doubled; {told}")


def test_no_connection_is_left(berth: Stack, alice: Person, found: Found) -> None:
    first = alice.launch_many("crowded", 2)
    with ThreadPoolExecutor(1) as pool, every_connection_taken(berth) as taken:
        late = pool.submit(alice.launch, "late")
        until("the person hears why", lambda: alice.told or late.done())
        assert ready(berth, "/readyz/web") == {"database": "The database does not answer."}
        time.sleep(5)  # long enough for every part to find no connection
    launched = [*(each.result() for each in first), late.result()]
    alice.sees_ready(launched)
    hold(berth, 60)
    until("all parts are well", lambda: not ready(berth), 60)
    found("PostgreSQL out of connections", f"{taken} taken by others; 3 launches ready; told: {SENTENCE}")


def test_the_database_is_slow(berth: Stack, alice: Person, found: Found) -> None:
    """Hold a lock that every page and every reconcile waits for."""
    before = alice.launch_many("slow", 2)
    with berth.database(read_only=False) as other, ThreadPoolExecutor(30) as pool:
        with other.transaction():
            other.execute("LOCK TABLE workspaces_workspace IN ACCESS EXCLUSIVE MODE")
            asked = [pool.submit(alice.ask, "GET", f"workspaces/?tenant={TENANT}") for _ in range(25)]
            until("who waited for a turn is told", lambda: alice.told, 60)
        waited = [each.result() for each in asked]
    assert all(len(answer["results"]) == 2 for answer in waited)
    alice.sees_ready([each.result() for each in before])
    hold(berth, 60)
    found("PostgreSQL slow", f"25 waited for a lock, and were answered or told: {' '.join(alice.told)}")


def test_live_events_are_cut_off_in_the_midst(berth: Stack, alice: Person, found: Found) -> None:
    """Pages catch up on events sent while nobody listened to PostgreSQL: all end with the whole story."""
    launched = [each.result() for each in alice.launch_many("heard", 2)]
    cuts = 0
    with listening(berth, alice, launched, each=10) as listeners:
        for verb in ("stop", "start"):
            for workspace in launched:
                alice.sees(workspace, "ready", "stopped")
                alice.ask("POST", f"workspaces/{workspace}/{verb}/")
            for _ in range(3):
                cuts += until("somebody listens", partial(end_connections, berth, "LISTEN berth_live"))
                time.sleep(0.3)
        alice.sees_ready(launched)
        hold(berth, 60)
        last = {str(row["id"]): row["last_event"] for row in berth.rows(LAST_EVENTS)}
        for listener in listeners:
            whole = partial(listener.ends_with, last[listener.workspace], "ready")
            until(f"a page has heard the whole story, not {listener.numbers}", whole)
    again = sum(listener.connections - 1 for listener in listeners)
    found("LISTEN of live events killed", f"{cuts} times; 20 sockets have every event, {again} reconnected")


def test_the_workers_listening_is_cut_off(berth: Stack, alice: Person, found: Found) -> None:
    cuts = 0
    launched = []
    for number in range(4):
        cuts += until("the workers listen", partial(end_connections, berth, "LISTEN berth_tasks"))
        launched.append(alice.launch(f"unheard-{number}"))
    alice.sees_ready(launched)
    hold(berth, 60)
    assert not alice.told
    found("LISTEN of tasks killed", f"{cuts} times; 4 launches ready, nobody noticed")


@pytest.mark.parametrize(
    ("words", "shift"),
    [rare("back by 5 min", "5 min"), ("back by 1 h", "1 h"), rare("forward by 1 h", "-1 h")],
)
def test_the_clock_is_set_in_the_midst_of_launches(
    berth: Stack, alice: Person, found: Found, words: str, shift: str
) -> None:
    """Shift timestamps written before into the future or the past, as a clock that was set would."""
    with stopped(berth, "worker"):
        launched = [each.result() for each in alice.launch_many("timed", 3)]
        with berth.database(read_only=False) as database:
            for table, column in WRITTEN_BY_THE_CLOCK:
                database.execute(f"UPDATE {table} SET {column} = {column} + interval '{shift}'".encode())
    alice.sees_ready(launched)
    hold(berth, 60)
    found(f"clock set {words}", "3 launches ready, none waited for the clock")


@pytest.mark.parametrize("part", ["worker", rare("watcher"), rare("ssh-jump")])
def test_a_part_that_hangs_is_named_within_half_a_minute(berth: Stack, found: Found, part: str) -> None:
    until("all parts are well", lambda: not ready(berth), 60)
    began = time.monotonic()
    with stopped(berth, part):
        problem = until(f"the {part} is named", lambda: ready(berth).get(part), 60)
        took = time.monotonic() - began
        others = {"queue"} if part == "worker" else set()
        until("nobody else is named", lambda: set(ready(berth)) - others == {part})
        until("the web process is well", lambda: not ready(berth, "/readyz/web"))
    assert re.fullmatch(r"Not heard for \d+ seconds\.", str(problem))
    until("all parts are well", lambda: not ready(berth), 60)
    found(f"{part} hangs", f"/readyz names it after {took:.0f} s, and is well again when it goes on")


@pytest.mark.long
def test_after_everything_was_killed_nothing_of_before_counts_as_alive(tmp_path: Path, found: Found) -> None:
    """Signs of life from before are only seconds old; the next start must not count them as its own."""
    with world_in(tmp_path, TENANT) as world:
        stack = world.stack
        old = {row["pid"] for row in stack.rows("SELECT pid FROM vitals_process")}
        assert stack.process is not None
        for part in (SUPERVISOR, *PARTS):
            stack.kill(part)
        stack.process.kill()
        stack.process.wait()
        stack.start()
        new = {row["pid"] for row in stack.rows("SELECT pid FROM vitals_process")}
        assert not old & new
        found("make up after SIGKILL", "ready by new signs of life alone")
