"""The cluster's API fails, stalls, goes away and comes back, while people launch, stop, restart and delete.

Faults of calls hit one tenant's namespace each, in parallel. Faults of watches and of the whole cluster hit everybody.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.up import leftovers
from tests.e2e.driver import Portal, browser
from tests.e2e.stack import until
from tests.proof import invariants
from tests.proof.faulty_world import BERTHS, Victim, World, check_and_leave, clear_away, world_in
from tests.sampling import rare, sampled

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

Found = Callable[[str, str], None]
AWAY = "The cluster does not answer at the moment"
AWAY_SECONDS = 60
LONG = 300

# Faults of Berth's calls in one tenant's namespace, on while its people work there.
TROUBLED: dict[str, dict[str, Any]] = {
    "10% of calls answer 500": {"status": 500, "share": 0.1},
    "a third is throttled for a second": {"status": 429, "retry_after": 1, "share": 0.33},
    "some are throttled for an hour": {"status": 429, "retry_after": 3600, "times": 5},
    "a fifth is reset before it is done": {"reset": "before", "share": 0.2},
    "a fifth is reset in the middle of its answer": {"reset": "middle", "share": 0.2},
    "a fifth is reset after it was done": {"reset": "after", "share": 0.2},
}
TENANTS = {case: f"calls-{number}" for number, case in enumerate(TROUBLED)}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("calls")
    with world_in(folder, "everybody", "slow", *TENANTS.values()) as world:
        yield world


# --- calls


def work_through(world: World, case: str) -> str:
    """Stop, restart, delete and launch a workspace each under the tenant's fault; return a summary."""
    tenant = TENANTS[case]
    stops, restarts, goes = (
        world.ready(person, tenant, name)
        for person, name in (("alice", "stops"), ("bob", "restarts"), ("alice", "goes"))
    )
    began = time.monotonic()
    with world.fault(match=BERTHS | {"namespace": f"berth-{tenant}"}, **TROUBLED[case]):
        starts = world.launch("bob", tenant, "starts")
        stops.wish("stop")
        restarts.wish("restart")
        goes.leave()
        starts.becomes("ready", LONG)
        stops.becomes("stopped", LONG)
        restarts.is_back(2, LONG)
        until("it is gone", lambda: goes.now()["deleted_at"], LONG)
    seconds = time.monotonic() - began
    invariants.hold(world.stack, 60, only=[victim.id for victim in (stops, restarts, goes, starts)])
    assert not any("cluster does not answer" in victim.now()["message"] for victim in (starts, restarts))
    for victim in (stops, restarts, starts):
        victim.leave()
    return f"a launch, a stop, a restart and a deletion under it, {seconds:.0f} s"


@pytest.fixture(scope="module")
def outcomes(world: World, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Outcomes of the cases that are run, in parallel, each in its own namespace."""
    run = [case for case in TROUBLED if any(f"[{case}]" in item.name for item in request.session.items)]
    with ThreadPoolExecutor(len(run)) as pool:
        return {case: pool.submit(work_through, world, case) for case in run}


@pytest.mark.parametrize("case", sampled({case: (case,) for case in TROUBLED}, every=5))
def test_all_wishes_come_true_while(case: str, outcomes: dict[str, Any], found: Found) -> None:
    found(case, outcomes[case].result())


@pytest.mark.long
def test_slow_calls_of_one_tenant_delay_nobody_else(world: World, found: Found) -> None:
    """A reconcile then takes a worker a minute; the other workers go on with other workspaces."""
    stops = world.ready("bob", "slow", "stops")
    began = time.monotonic()
    with world.fault(match=BERTHS | {"namespace": "berth-slow"}, latency_ms=5000):
        starts = world.launch("alice", "slow", "starts")
        stops.wish("stop")
        other = world.ready("bob", "everybody", "bystander")
        others_seconds = time.monotonic() - began
        assert starts.now()["phase"] == "starting"
        starts.becomes("ready", LONG)
        stops.becomes("stopped", LONG)
    seconds = time.monotonic() - began
    check_and_leave(starts, stops, other)
    found(
        "5 s latency",
        f"a launch and a stop in {seconds:.0f} s; another tenant's launch in {others_seconds:.0f} s",
    )


# --- watches


@contextmanager
def watched(world: World) -> Iterator[list[Victim]]:
    """Yield two ready workspaces, whose pods the test deletes; both must come back in a second run."""
    victims = [world.ready(person, "everybody", "watched") for person in ("alice", "bob")]
    yield victims
    for victim in victims:
        victim.is_back(2)
    invariants.hold(world.stack, 60, only=[victim.id for victim in victims])
    clear_away(*victims)


@pytest.mark.parametrize("how", ["drop_watches", rare("reset_watches")])
def test_changes_around_a_broken_watch_are_not_missed(how: str, world: World, found: Found) -> None:
    with watched(world) as victims:
        victims[0].delete("Pod", gracePeriodSeconds=0)
        world.on(**{how: True})
        victims[1].delete("Pod", gracePeriodSeconds=0)
    found(how.replace("_", " "), "pods deleted around it were seen to end")


def test_changes_before_lost_history_are_found_by_a_list(world: World, found: Found) -> None:
    with watched(world) as victims, world.fault(silent_watches=True):
        for victim in victims:
            victim.delete("Pod", gracePeriodSeconds=0)
        world.on(expire_watches=True)
        world.on(reset_watches=True)
    found("watches reset, history expired (410)", "all was listed anew")


@pytest.mark.long
def test_launches_and_stops_do_not_need_a_working_watch(world: World, found: Found) -> None:
    with world.fault(silent_watches=True):
        victim = world.launch("bob", "everybody", "unwatched")
        victim.becomes("ready")
        victim.wish("stop")
        victim.becomes("stopped")
    check_and_leave(victim)
    found("watches silent", "a launch and a stop went through by the periodic pass")


# --- the whole cluster


def hung(world: World) -> Callable[[], None]:
    """Make the API server accept connections and answer nothing. Return a function that ends this."""
    processes = list(leftovers.marked(world.stack.folder, "cluster"))
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)

    def go_on() -> None:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)

    return go_on


def refusing(world: World) -> Callable[[], None]:
    fault = world.on(status=503, match=BERTHS)
    return lambda: world.off(fault)


def throttling(world: World) -> Callable[[], None]:
    fault = world.on(status=429, retry_after=3600, match=BERTHS)
    return lambda: world.off(fault)


@pytest.mark.parametrize(
    ("how", "seconds"),
    [rare(refusing, AWAY_SECONDS), rare(hung, 30), rare(throttling, 15)],
    ids=["503 for 60 s", "hung for 30 s", "throttled for an hour, for 15 s"],
)
def test_an_outage_delays_and_loses_nothing(
    how: Callable[[World], Callable[[], None]],
    seconds: float,
    world: World,
    found: Found,
    request: pytest.FixtureRequest,
) -> None:
    """Workspaces that run, stop or start meanwhile report the outage, and wait for nothing but its end."""
    runs = world.ready("alice", "everybody", f"runs-{how.__name__}")
    stops = world.ready("bob", "everybody", f"stops-{how.__name__}")
    pod = runs.uid("Pod")
    began = time.monotonic()
    end = how(world)
    try:
        starts = world.launch("alice", "everybody", f"starts-{how.__name__}")
        stops.wish("stop")
        for victim in (runs, starts, stops):
            victim.says(AWAY, 60)
        with browser(world.stack.address, "away") as context:
            Portal(context).sign_in("alice")
            page = context.new_page()
            page.goto(f"{world.stack.address}/workspaces/{runs.id}/")
            expect(page.locator("main")).to_contain_text(AWAY)
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            end()
            back = time.monotonic()
            expect(page.locator("main")).not_to_contain_text(AWAY, timeout=60_000)
    finally:
        end()
    starts.becomes("ready")
    stops.becomes("stopped")
    took = time.monotonic() - back
    assert not any(AWAY in victim.now()["message"] for victim in (runs, starts, stops))
    assert (runs.uid("Pod"), runs.told("ready"), runs.told("interrupted")) == (pod, 1, 0)
    invariants.hold(world.stack, 60)
    clear_away(runs, starts, stops)
    found(request.node.callspec.id, f"“{AWAY}”; all done {took:.0f} s after its return")


def test_a_cluster_that_dies_and_is_started_again(world: World, found: Found) -> None:
    """Pods are gone as after a power loss; running workspaces start again by themselves."""
    runs = world.ready("alice", "everybody", "dies-running")
    starts = world.launch("bob", "everybody", "dies-starting")
    world.stack.kill("cluster")
    until("it answers again", lambda: reachable(world), 60)
    world.kube.connect()
    runs.hears("interrupted")
    runs.is_back(2)
    starts.becomes("ready")
    invariants.hold(world.stack, 60)
    for victim in (runs, starts):
        victim.leave()
    found("the API server killed and started anew", "who ran there runs again, who started is ready")


def reachable(world: World) -> bool:
    try:
        return world.kube.call("GET", "/readyz")[0] == 200
    except OSError:
        return False
