"""Longest runtime of a tenant, and other limits on extending a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.errors import Conflict, Invalid
from clusters.models import Node
from quotas import admission
from quotas.models import Booking, Claim, TenantLimit
from quotas.sharing import Portion
from tests.cast import GIB, Cast
from tests.shared.stage import GPU
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.play import Play
from workspaces.launch.clone import clone
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace
from workspaces.runs import changes, lifecycle, lifetime
from workspaces.runs.changes import Change, Lifetime
from workspaces.sizes.sizing import SizeAsked

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def longest(cast: Cast, minutes: int) -> None:
    TenantLimit.objects.update_or_create(tenant=cast.demo, defaults={"longest_runtime_minutes": minutes})


def launched(play: Play, minutes: int | None, name: str = "other") -> Workspace:
    size = SizeAsked(flavor="a100-1")
    spec = LaunchSpec(tenant="demo", name=name, image="jupyter", size=size, max_runtime_minutes=minutes)
    return launch(play.cast.alice, spec)


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


def full_pool(cast: Cast, node: str) -> None:
    """Leave only the GPU that the workspace has on this node."""
    Node.objects.exclude(name=node).delete()
    Node.objects.update(allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110, GPU: 1})


def somebody_waits(cast: Cast) -> Claim:
    claim = admission.request(
        tenant=cast.second,
        user=cast.carol.user,
        pool=cast.pool,
        portion=Portion(1),
        cpu_millicores=1000,
        memory_mib=1024,
        holder_kind=Claim.Holder.JOB,
        holder_id=uuid4(),
    )
    admission.admit(cast.pool.pk)
    return claim


# --- What is asked for


@pytest.mark.parametrize(("asked", "given"), [(None, 120), (60, 60), (120, 120)])
def test_it_is_what_a_launch_gets_that_asks_for_none_and_the_most_that_may_be_asked(
    play: Play, asked: int | None, given: int
) -> None:
    longest(play.cast, 120)
    assert launched(play, asked).max_runtime_minutes == given
    assert Claim.objects.latest("created_at").max_runtime_minutes == given


def test_more_is_refused_at_its_field_with_what_is_allowed(play: Play) -> None:
    longest(play.cast, 120)
    with pytest.raises(Invalid, match="Workspaces in Demo can run for 2 hours at most") as refused:
        launched(play, 121)
    assert list(refused.value.fields) == ["max_runtime_minutes"]
    with pytest.raises(Invalid, match="2 hours at most"):
        changes.change(play.cast.alice, play.row, Change(lifetime=Lifetime(minutes=121)))


def test_a_clone_and_the_next_start_take_what_is_allowed_by_then_and_say_so(play: Play) -> None:
    longest(play.cast, 120)
    assert clone(play.cast.alice, play.row).max_runtime_minutes == 120
    lifecycle.stop(play.cast.alice, play.row)
    lifecycle.start(play.cast.alice, play.row)
    assert (play.row.max_runtime_minutes, play.claim().max_runtime_minutes) == (120, 120)
    assert play.told("lifetime_capped") == 1


def test_lowered_while_it_runs_it_ends_by_its_own_clock_and_its_restart_by_the_new_one(play: Play) -> None:
    before = ready(play, 600)
    longest(play.cast, 60)
    assert play.look().stops_at == before.stops_at
    lifecycle.restart(play.cast.alice, play.row)
    after = play.until(lambda row: row.phase == "ready" and row.run != before.run)
    assert after.ready_at and after.stops_at
    assert abs(after.stops_at - after.ready_at - 60 * MINUTE) < MINUTE


# --- What others plan by


def test_a_claim_ends_when_its_clock_does_with_time_for_the_start(play: Play) -> None:
    Claim.objects.update(max_runtime_minutes=60)
    Workspace.objects.update(max_runtime_minutes=60)
    play.until_phase("starting")
    claim = play.claim()
    assert claim.admitted_at and claim.ends_at == claim.admitted_at + 75 * MINUTE
    assert play.until_phase("ready").stops_at == play.claim().ends_at
    lifetime.extend(play.cast.alice, play.row, 30)
    assert play.row.stops_at == play.claim().ends_at


def test_who_waits_asks_the_queue_for_the_lifetime_as_it_was_changed(play: Play) -> None:
    changes.change(play.cast.alice, play.row, Change(lifetime=Lifetime(minutes=30)))
    assert play.claim().max_runtime_minutes == 30


def test_one_that_was_let_in_because_it_ends_in_time_stops_by_then_ready_or_not(play: Play) -> None:
    Workspace.objects.update(max_runtime_minutes=60)
    soon = timezone.now() + 90 * MINUTE
    Booking.objects.create(
        pool=play.cast.pool, tenant=play.cast.second, created_by=play.cast.carol.user, title="class",
        starts_at=soon, ends_at=soon + 60 * MINUTE, places=8, units_each=1,
    )  # fmt: skip
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


def test_while_it_comes_back_from_an_interruption_it_is_not_extended_beyond_either(play: Play) -> None:
    longest(play.cast, 120)
    before = ready(play, 60)
    play.api.end_pod(play.pod(), "Evicted")
    row = play.until(lambda row: row.run != before.run)
    assert (row.ready_at, row.stops_at) == (None, before.stops_at)
    with pytest.raises(Conflict) as refused:
        lifetime.extend(play.cast.alice, row, 600)
    assert refused.value.code == "longest_runtime"


def test_what_never_becomes_ready_ends_with_its_lifetime_all_the_same(play: Play) -> None:
    play.until_phase("starting")
    Workspace.objects.update(max_runtime_minutes=60, step="endpoint", step_since=timezone.now() - 70 * MINUTE)
    lifetime.pass_due()
    assert play.row.desired == "running"
    Workspace.objects.update(step_since=timezone.now() - 76 * MINUTE)
    lifetime.pass_due()
    assert (play.row.desired, play.told("stopped_by_lifetime")) == ("stopped", 1)


def test_nobody_goes_on_into_what_is_kept_for_who_waits(cast: Cast) -> None:
    row = runs_for(cast, 60)
    full_pool(cast, row.node)
    waiting = somebody_waits(cast)
    with pytest.raises(
        Conflict, match=r"It may run until .* at most. After that its GPUs are reserved"
    ) as refused:
        lifetime.extend(cast.alice, row, 10)
    assert refused.value.code == "kept_for_others"
    with pytest.raises(Conflict, match="reserved for others"):
        changes.change(cast.alice, row, Change(lifetime=Lifetime(minutes=None)))
    admission.release(waiting.pk, "withdrawn")
    assert lifetime.extend(cast.alice, row, 10)


def test_nobody_goes_on_into_a_booking(cast: Cast) -> None:
    row = runs_for(cast, 60)
    full_pool(cast, row.node)
    soon = timezone.now() + 90 * MINUTE
    Booking.objects.create(
        pool=cast.pool, tenant=cast.second, created_by=cast.carol.user, title="class",
        starts_at=soon, ends_at=soon + 60 * MINUTE, places=1, units_each=1,
    )  # fmt: skip
    lifetime.extend(cast.alice, row, 20)
    with pytest.raises(Conflict, match="reserved for others"):
        lifetime.extend(cast.alice, row, 20)


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        ({"reclaim_at": 5, "reclaim_code": "owner_waits"}, "owner_waits"),
        ({"budget_ends_at": 5}, "out_of_budget"),
        ({"must_end_at": 65}, "kept_for_others"),
    ],
)
def test_nobody_goes_on_beyond_what_was_said_of_its_end(
    cast: Cast, promise: dict[str, Any], code: str
) -> None:
    row = runs_for(cast, 60)
    said = {
        name: timezone.now() + value * MINUTE if isinstance(value, int) else value
        for name, value in promise.items()
    }
    Claim.objects.filter(holder_id=row.pk).update(**said)
    with pytest.raises(Conflict, match="It may run until") as refused:
        lifetime.extend(cast.alice, row, 10)
    assert refused.value.code == code


def test_a_restart_is_no_way_around_who_waits(play: Play) -> None:
    before = ready(play, 60)
    full_pool(play.cast, before.node)
    somebody_waits(play.cast)
    ends_at = timezone.now() + 7 * MINUTE  # most of its time has passed
    Workspace.objects.update(stops_at=ends_at)
    Claim.objects.filter(holder_id=before.pk).update(ends_at=ends_at)
    lifecycle.restart(play.cast.alice, play.row)
    after = play.until(lambda row: row.phase == "ready" and row.run != before.run)
    assert after.stops_at == ends_at
