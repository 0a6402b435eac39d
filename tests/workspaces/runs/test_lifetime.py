"""Lifetimes: the clock that starts when a run is ready, its warnings, its end, and moving the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import AuditEntry
from devcluster.testing.waiting import until
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.concurrency import elsewhere, waits_for_me
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.play import Play
from workspaces import receivers
from workspaces.models import Desired, Ending, Phase, Workspace
from workspaces.runs import lifecycle, lifetime
from workspaces.state import story

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def running(cast: Cast, left: timedelta | None = None, **changes: Any) -> Workspace:
    """Make a ready workspace of bob's whose lifetime ends in `left`."""
    changes = {"max_runtime_minutes": 60} | changes
    if left is not None:
        stops_at = timezone.now() + left
        changes |= {"stops_at": stops_at, "lifetime_due_at": min(stops_at, timezone.now())}
    return make_workspace(cast, cast.bob, **changes)


def told(workspace: Workspace, code: str) -> list[dict[str, Any]]:
    return list(workspace.events.filter(code=code).values_list("data", flat=True))


# --- When


@pytest.mark.parametrize(
    ("minutes", "warned_before"),
    [(1440, [30, 5]), (60, [30, 5]), (59, [5]), (10, [5]), (8, [4]), (1, [0.5])],
)
def test_warnings_come_in_time_and_for_a_short_lifetime_at_its_half(
    minutes: int, warned_before: list[float]
) -> None:
    stops_at = NOON + timedelta(minutes=minutes)
    due, warnings = lifetime.first_due(NOON, stops_at), []
    while due < stops_at:
        warnings.append((stops_at - due) / timedelta(minutes=1))
        due = lifetime.due_after_warning(due, stops_at)
    assert warnings == warned_before


# --- The clock of a run


@pytest.mark.slow
def test_the_clock_starts_when_the_run_is_ready(play: Play) -> None:
    Workspace.objects.filter(pk=play.id).update(max_runtime_minutes=60)
    play.until_phase("starting")
    assert play.row.stops_at is None
    row = play.until_phase("ready")
    assert row.ready_at and row.stops_at == row.ready_at + timedelta(minutes=60)
    assert play.stop().stops_at is None
    lifecycle.start(play.cast.alice, play.row)
    again = play.until_phase("ready")
    assert again.stops_at and again.stops_at > row.stops_at


def test_an_interrupted_run_continues_on_its_clock(play: Play) -> None:
    Workspace.objects.filter(pk=play.id).update(max_runtime_minutes=60)
    before = play.begin_ready()
    play.api.end_pod(play.pod(), "Evicted")
    after = play.until(lambda row: row.phase == "ready" and row.run != before.run)
    assert after.stops_at == before.stops_at


def test_without_a_lifetime_nothing_ends_it(play: Play) -> None:
    assert play.begin_ready().lifetime_due_at is None


# --- What is due


@pytest.mark.slow
def test_a_run_is_warned_then_stopped_with_its_files_and_returns_its_gpu(play: Play) -> None:
    Workspace.objects.filter(pk=play.id).update(max_runtime_minutes=60)
    row = play.begin_ready()
    for left in (30, 5):
        soon = timezone.now() + timedelta(minutes=left)
        Workspace.objects.filter(pk=play.id).update(stops_at=soon, lifetime_due_at=timezone.now())
        receivers.on_tick()
        receivers.on_tick()
        assert play.row.phase == "ready"
    assert [data["minutes"] for data in told(row, "stops_soon")] == [30, 5]
    Workspace.objects.filter(pk=play.id).update(stops_at=timezone.now(), lifetime_due_at=timezone.now())
    receivers.on_tick()
    assert (play.row.desired, play.row.phase, play.row.stops_at) == (Desired.STOPPED, Phase.STOPPING, None)
    play.until_phase("stopped")
    assert play.claim().state == Claim.State.RELEASED
    assert len(told(row, "stopped_by_lifetime")) == 1
    assert play.api.of("PersistentVolumeClaim")


def test_a_pass_that_comes_late_stops_at_once_without_a_warning(cast: Cast) -> None:
    workspace = running(cast, timedelta(hours=-3))
    lifetime.pass_due()
    workspace.refresh_from_db()
    assert (workspace.desired, workspace.ending) == (Desired.STOPPED, Ending.STOP)
    assert told(workspace, "stops_soon") == []


def test_only_lifetimes_that_are_due_are_touched(cast: Cast) -> None:
    later = running(cast, name="later", lifetime_due_at=timezone.now() + timedelta(minutes=1))
    for workspace in (later, make_workspace(cast, cast.bob, name="none")):
        lifetime.pass_due()
        assert Workspace.objects.get(pk=workspace.pk).last_event == workspace.last_event


def test_a_second_pass_stops_nothing_again(cast: Cast) -> None:
    workspace = running(cast, timedelta(seconds=-1))
    for _ in range(2):  # the second found it due before the first was done
        lifetime.act(workspace.pk, cast.cluster.pk)
    assert len(told(workspace, "stopped_by_lifetime")) == 1


@pytest.mark.django_db(transaction=True)
def test_an_extension_while_the_pass_waits_for_the_row_is_kept(cast: Cast) -> None:
    workspace = running(cast, timedelta(seconds=-1))
    with transaction.atomic():
        lifetime.extend(cast.bob, workspace, 30)
        stopping = elsewhere(lambda: lifetime.act(workspace.pk, cast.cluster.pk))
        until(waits_for_me)
    stopping.join()
    workspace.refresh_from_db()
    assert workspace.desired == Desired.RUNNING
    assert workspace.stops_at and workspace.stops_at > timezone.now() + timedelta(minutes=29)


# --- Extend


def extend(cast: Cast, workspace: Workspace, body: Any = None, who: str = "bob") -> Any:
    return ask(script(getattr(cast, who)), "POST", f"workspaces/{workspace.pk}/extend/", body)


@pytest.mark.parametrize(
    ("minutes", "span"), [(90, "90 minutes"), (240, "4 hours"), (2880, "2 days"), (1, "1 minute")]
)
def test_a_span_is_in_its_largest_whole_unit(minutes: int, span: str) -> None:
    assert story.sentence("extended", {"by": "bob", "minutes": minutes}) == f"bob extended it by {span}."


@pytest.mark.parametrize(("body", "more"), [({"minutes": 15}, 15), ({}, 60), (None, 60)])
def test_extend_moves_the_end_by_the_minutes_or_by_the_lifetime(cast: Cast, body: Any, more: int) -> None:
    workspace = running(cast, timedelta(minutes=10))
    answer = extend(cast, workspace, body)
    assert workspace.stops_at and answer.status_code == 202
    assert datetime.fromisoformat(answer.json()["stops_at"]) == workspace.stops_at + timedelta(minutes=more)
    assert told(workspace, "extended") == [{"by": "bob", "minutes": more}]
    workspace.refresh_from_db()
    assert workspace.lifetime_due_at and workspace.lifetime_due_at > timezone.now()


@pytest.mark.parametrize("who", ["alice", "admin"])
def test_owners_of_the_tenant_and_admins_extend_too(cast: Cast, who: str) -> None:
    workspace = running(cast, timedelta(minutes=10))
    assert extend(cast, workspace, {"minutes": 5}, who).status_code == 202
    assert AuditEntry.objects.filter(action="workspace.extend", outcome="done").exists()


def test_a_run_without_an_end_is_not_extended(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    answer = extend(cast, workspace)
    assert (answer.status_code, answer.json()["last_event"]) == (200, workspace.last_event)


@pytest.mark.parametrize(
    ("changes", "body", "status", "code"),
    [
        ({"phase": Phase.STOPPED}, {}, 409, "not_running"),
        ({"phase": Phase.WAITING}, {}, 409, "clock_not_running"),
        ({"left": timedelta(minutes=5), "max_runtime_minutes": None}, {}, 422, "minutes_required"),
        ({"left": timedelta(days=364)}, {"minutes": 2880}, 422, "lifetime_too_long"),
        ({"left": timedelta(minutes=5)}, {"minutes": 0}, 400, "invalid"),
        ({"left": timedelta(minutes=5)}, {"minutes": 10**9}, 400, "invalid"),
        ({"left": timedelta(minutes=5)}, {"hours": 1}, 400, "invalid"),
    ],
)
def test_an_impossible_extension_is_refused(
    cast: Cast, changes: dict[str, Any], body: Any, status: int, code: str
) -> None:
    workspace = running(cast, **changes)
    answer = extend(cast, workspace, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["hint"]
    before = workspace.stops_at
    workspace.refresh_from_db()
    assert workspace.stops_at == before


# --- At launch


def test_a_launch_says_its_lifetime(cast: Cast) -> None:
    body = {"tenant": "demo", "name": "exp-1", "image": "jupyter", "flavor": "a100-1"}
    bob = script(cast.bob)
    made = ask(bob, "POST", "workspaces/", body | {"max_runtime_minutes": 90, "notify": False}).json()
    assert (made["max_runtime_minutes"], made["notify"], made["stops_at"]) == (90, False, None)
    none = ask(bob, "POST", "workspaces/", body | {"name": "exp-2", "max_runtime_minutes": None}).json()
    assert (none["max_runtime_minutes"], none["notify"]) == (None, True)
