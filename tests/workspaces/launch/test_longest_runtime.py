"""Longest runtime of a tenant, and other limits on extending a run."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from accounts.errors import Conflict, Invalid
from quotas import admission
from quotas.models import Booking, Claim, TenantLimit
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.play import Play, leave_one_gpu, request_of_carol
from tests.workspaces.specs import spec
from workspaces.launch.clone import clone
from workspaces.launch.launch import launch
from workspaces.models import Workspace
from workspaces.runs import changes, lifecycle, lifetime
from workspaces.runs.changes import Change, Lifetime

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def longest(cast: Cast, minutes: int) -> None:
    TenantLimit.objects.update_or_create(tenant=cast.demo, defaults={"longest_runtime_minutes": minutes})


def launched(play: Play, minutes: int | None) -> Workspace:
    return launch(play.cast.alice, spec(name="other", max_runtime_minutes=minutes))


def ready(play: Play, minutes: int | None) -> Workspace:
    Workspace.objects.filter(pk=play.id).update(max_runtime_minutes=minutes)
    Claim.objects.update(max_runtime_minutes=minutes)
    return play.begin_ready()


def runs_for(cast: Cast, minutes: int) -> Workspace:
    """Make a ready workspace that ends in so many minutes."""
    stops_at = timezone.now() + minutes * MINUTE
    row = make_workspace(cast, cast.alice, max_runtime_minutes=minutes, stops_at=stops_at)
    Claim.objects.filter(holder_id=row.pk).update(ends_at=stops_at, max_runtime_minutes=minutes)
    return row


def booking(cast: Cast, places: int) -> datetime:
    """Book so many GPUs for carol, 90 minutes from now. Return when that begins."""
    begins = timezone.now() + 90 * MINUTE
    Booking.objects.create(
        pool=cast.pool, tenant=cast.second, created_by=cast.carol.user, title="class",
        starts_at=begins, ends_at=begins + 60 * MINUTE, places=places, units_each=1,
    )  # fmt: skip
    return begins


# --- What is asked for


@pytest.mark.parametrize(("asked", "given"), [(None, 120), (60, 60), (120, 120)])
def test_a_launch_gets_at_most_the_longest_runtime(play: Play, asked: int | None, given: int) -> None:
    longest(play.cast, 120)
    assert launched(play, asked).max_runtime_minutes == given
    assert Claim.objects.latest("created_at").max_runtime_minutes == given


def test_a_longer_request_is_refused_at_its_field(play: Play) -> None:
    longest(play.cast, 120)
    with pytest.raises(Invalid, match="Workspaces in Demo can run for 2 hours at most") as refused:
        launched(play, 121)
    assert list(refused.value.fields) == ["max_runtime_minutes"]
    with pytest.raises(Invalid, match="2 hours at most"):
        changes.change(play.cast.alice, play.row, Change(lifetime=Lifetime(minutes=121)))


def test_a_clone_and_the_next_start_are_cut_to_the_longest_runtime(play: Play) -> None:
    longest(play.cast, 120)
    assert clone(play.cast.alice, play.row).max_runtime_minutes == 120
    lifecycle.stop(play.cast.alice, play.row)
    lifecycle.start(play.cast.alice, play.row)
    assert (play.row.max_runtime_minutes, play.claim().max_runtime_minutes) == (120, 120)
    assert play.told("lifetime_capped") == 1


def test_a_lowered_limit_holds_from_the_next_restart(play: Play) -> None:
    before = ready(play, 600)
    longest(play.cast, 60)
    assert play.look().stops_at == before.stops_at
    lifecycle.restart(play.cast.alice, play.row)
    after = play.until(lambda row: row.phase == "ready" and row.run != before.run)
    assert after.ready_at and after.stops_at
    assert abs(after.stops_at - after.ready_at - 60 * MINUTE) < MINUTE


# --- What others plan by


def test_a_claim_ends_with_the_lifetime_and_time_for_the_start(play: Play) -> None:
    Claim.objects.update(max_runtime_minutes=60)
    Workspace.objects.update(max_runtime_minutes=60)
    play.until_phase("starting")
    claim = play.claim()
    assert claim.admitted_at and claim.ends_at == claim.admitted_at + 75 * MINUTE
    assert play.until_phase("ready").stops_at == play.claim().ends_at
    lifetime.extend(play.cast.alice, play.row, 30)
    assert play.row.stops_at == play.claim().ends_at


def test_a_changed_lifetime_changes_the_waiting_claim(play: Play) -> None:
    changes.change(play.cast.alice, play.row, Change(lifetime=Lifetime(minutes=30)))
    assert play.claim().max_runtime_minutes == 30


def test_a_run_admitted_before_a_booking_stops_when_that_begins(play: Play) -> None:
    Workspace.objects.update(max_runtime_minutes=60)
    soon = booking(play.cast, places=8)
    Claim.objects.update(max_runtime_minutes=60)
    row = play.until_phase("starting")
    assert (play.claim().must_end_at, row.stops_at) == (soon, soon)
    row = play.until_phase("ready")
    assert row.stops_at is not None and row.stops_at < soon


# --- Extend


def test_it_is_extended_up_to_the_longest_runtime_from_its_begin(cast: Cast) -> None:
    longest(cast, 120)
    row = runs_for(cast, 60)
    lifetime.extend(cast.alice, row, 60)
    with pytest.raises(Conflict, match="does not allow a longer runtime") as refused:
        lifetime.extend(cast.alice, row, 2)
    assert refused.value.code == "longest_runtime"


def test_an_interrupted_run_is_not_extended_beyond_the_longest_runtime(play: Play) -> None:
    longest(play.cast, 120)
    before = ready(play, 60)
    play.api.end_pod(play.pod(), "Evicted")
    row = play.until(lambda row: row.run != before.run)
    assert (row.ready_at, row.stops_at) == (None, before.stops_at)
    with pytest.raises(Conflict) as refused:
        lifetime.extend(play.cast.alice, row, 600)
    assert refused.value.code == "longest_runtime"


def test_a_start_that_is_never_ready_ends_with_its_lifetime(play: Play) -> None:
    play.until_phase("starting")
    Workspace.objects.update(max_runtime_minutes=60, step="endpoint", step_since=timezone.now() - 70 * MINUTE)
    lifetime.pass_due()
    assert play.row.desired == "running"
    Workspace.objects.update(step_since=timezone.now() - 76 * MINUTE)
    lifetime.pass_due()
    assert (play.row.desired, play.told("stopped_by_lifetime")) == ("stopped", 1)


def test_a_run_is_not_extended_into_a_reservation(cast: Cast) -> None:
    row = runs_for(cast, 60)
    leave_one_gpu(cast, row.node)
    waiting = request_of_carol(cast)
    with pytest.raises(Conflict, match="After that its GPUs are reserved") as refused:
        lifetime.extend(cast.alice, row, 10)
    assert refused.value.code == "kept_for_others"
    with pytest.raises(Conflict, match="reserved for others"):
        changes.change(cast.alice, row, Change(lifetime=Lifetime(minutes=None)))
    admission.release(waiting.pk, "withdrawn")
    assert lifetime.extend(cast.alice, row, 10)


def test_a_run_is_not_extended_into_a_booking(cast: Cast) -> None:
    row = runs_for(cast, 60)
    leave_one_gpu(cast, row.node)
    booking(cast, places=1)
    lifetime.extend(cast.alice, row, 20)
    with pytest.raises(Conflict, match="reserved for others"):
        lifetime.extend(cast.alice, row, 20)


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        ({"reclaim_at": 5}, "owner_waits"),
        ({"budget_ends_at": 5}, "out_of_budget"),
        ({"must_end_at": 65}, "kept_for_others"),
    ],
)
def test_a_run_is_not_extended_beyond_an_end_set_by_the_queue(
    cast: Cast, promise: dict[str, int], code: str
) -> None:
    row = runs_for(cast, 60)
    Claim.objects.filter(holder_id=row.pk).update(
        **{name: timezone.now() + minutes * MINUTE for name, minutes in promise.items()},
        reclaim_code="owner_waits",
    )
    with pytest.raises(Conflict) as refused:
        lifetime.extend(cast.alice, row, 10)
    assert refused.value.code == code


def test_a_restart_does_not_extend_a_run_past_a_reservation(play: Play) -> None:
    before = ready(play, 60)
    leave_one_gpu(play.cast, before.node)
    request_of_carol(play.cast)
    ends_at = timezone.now() + 7 * MINUTE  # most of its time has passed
    Workspace.objects.update(stops_at=ends_at)
    Claim.objects.filter(holder_id=before.pk).update(ends_at=ends_at)
    lifecycle.restart(play.cast.alice, play.row)
    after = play.until(lambda row: row.phase == "ready" and row.run != before.run)
    assert after.stops_at == ends_at
