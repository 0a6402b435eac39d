"""Weekly schedules on rows: set by the owner, carried out once, polite where there is no room."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, time, timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from accounts import members
from accounts.announcements.models import Announcement
from accounts.errors import Invalid, NotAllowed
from accounts.models import AuditEntry
from accounts.notices.models import Notice
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase, Schedule, Workspace
from workspaces.runs import idleness, lifecycle, schedule

TIMES: dict[str, Any] = {
    "start": time(9),
    "stop": time(18),
    "days": range(1, 8),
    "time_zone": "Europe/Berlin",
}


def made(cast: Cast, phase: Phase = Phase.STOPPED) -> tuple[Workspace, Schedule]:
    desired = Desired.RUNNING if phase == Phase.READY else Desired.STOPPED
    workspace = make_workspace(cast, cast.bob, phase, desired=desired)
    return workspace, schedule.put(cast.bob, workspace, **TIMES)


def look(row: Workspace, at: datetime) -> Workspace:
    schedule.act(row.pk, row.pool.cluster_id, row.tenant_id, at)
    return Workspace.objects.get(pk=row.pk)


def next_at(row: Schedule, hour: int, minute: int = 0) -> datetime:
    zone = schedule.week_of(row).zone
    day = timezone.now().astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(day, time(hour, minute), zone)


def last_code(row: Workspace) -> str:
    return row.events.order_by("-number").values_list("code", flat=True)[0]


@pytest.mark.django_db
def test_it_starts_and_after_a_while_without_room_leaves_the_queue(cast: Cast) -> None:
    workspace, row = made(cast)
    at = next_at(row, 9)
    assert look(workspace, at - timedelta(minutes=1)).desired == Desired.STOPPED
    there = look(workspace, at)
    assert (there.desired, there.phase) == (Desired.RUNNING, Phase.WAITING)
    assert AuditEntry.objects.filter(action="workspace.start-by-schedule", actor=None).exists()
    assert look(workspace, at + timedelta(minutes=14)).desired == Desired.RUNNING
    there = look(workspace, at + timedelta(minutes=15))
    assert there.desired == Desired.STOPPED
    assert not Claim.objects.filter(holder_id=workspace.pk, state=Claim.State.WAITING).exists()
    codes = list(there.events.order_by("number").values_list("code", flat=True))
    assert "schedule_no_room" in codes
    assert Notice.objects.filter(user=cast.bob.user, data__code="schedule_no_room").exists()


@pytest.mark.django_db
def test_a_stop_is_announced_and_by_one_press_kept_for_the_day(cast: Cast) -> None:
    workspace, row = made(cast, Phase.READY)
    warned = look(workspace, next_at(row, 17, 50))
    assert last_code(warned) == "schedule_stops_soon"
    assert Notice.objects.filter(user=cast.bob.user, data__code="schedule_stops_soon").exists()
    assert idleness.keep_alive(cast.bob, warned)
    assert Schedule.objects.get().stops_at is None
    Schedule.objects.update(by_hand_at=next_at(row, 17, 55), due_at=next_at(row, 18))
    assert look(workspace, next_at(row, 18)).desired == Desired.RUNNING
    tomorrow = timedelta(days=1)
    look(workspace, next_at(row, 17, 50) + tomorrow)
    there = look(workspace, next_at(row, 18) + tomorrow)
    assert there.desired == Desired.STOPPED
    assert "stopped_by_schedule" in there.events.values_list("code", flat=True)


def removed(cast: Cast) -> None:
    members.remove(cast.alice, cast.demo, "bob")


def deactivated(cast: Cast) -> None:
    members.set_active(cast.admin, cast.bob.user, active=False)


@pytest.mark.django_db
@pytest.mark.parametrize("loses", [removed, deactivated])
def test_a_start_that_is_refused_is_told_with_the_reason(cast: Cast, loses: Callable[[Cast], None]) -> None:
    workspace, row = made(cast)
    loses(cast)
    there = look(workspace, next_at(row, 9))
    assert there.desired == Desired.STOPPED
    assert last_code(there) == "schedule_refused"
    after = Schedule.objects.get()
    assert (after.is_on, after.due_at) == (False, None), "their right is gone, not only for today"


@pytest.mark.django_db
def test_in_maintenance_a_start_is_left_out_that_day_and_the_schedule_goes_on(cast: Cast) -> None:
    workspace, row = made(cast)
    now = timezone.now()
    Announcement.objects.create(text="New switches", shown_from=now, no_launches_from=now)
    there = look(workspace, next_at(row, 9))
    assert (there.desired, last_code(there)) == (Desired.STOPPED, "schedule_refused")
    assert Schedule.objects.get().due_at == next_at(row, 17, 50)


@pytest.mark.django_db
def test_hands_are_noted_and_a_schedule_that_is_off_does_nothing(cast: Cast) -> None:
    workspace, row = made(cast)
    lifecycle.start(cast.bob, workspace)
    assert Schedule.objects.get().by_hand_at is not None
    schedule.put(cast.bob, workspace, **TIMES, is_on=False)
    assert Schedule.objects.get().due_at is None
    assert look(workspace, next_at(row, 17, 50)).last_event == Workspace.objects.get().last_event
    schedule.remove(cast.bob, workspace)
    assert not Schedule.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stop": time(9, 29)}, "stop"),
        ({"stop": time(9)}, "stop"),
        ({"days": []}, "days"),
        ({"days": [0]}, "days"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(cast: Cast, change: dict[str, Any], field: str) -> None:
    workspace = make_workspace(cast, cast.bob)
    with pytest.raises(Invalid) as refused:
        schedule.put(cast.bob, workspace, **(TIMES | change))
    assert set(refused.value.fields) == {field}
    with pytest.raises(NotAllowed):
        schedule.put(cast.alice, workspace, **TIMES)


@pytest.mark.django_db(transaction=True)
def test_two_processes_that_look_at_once_start_it_once(cast: Cast) -> None:
    workspace, row = made(cast)
    at = next_at(row, 9)

    def one(_number: int) -> None:
        try:
            schedule.act(workspace.pk, workspace.pool.cluster_id, workspace.tenant_id, at)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert Claim.objects.filter(holder_id=workspace.pk, state=Claim.State.WAITING).count() == 1
    assert workspace.events.filter(code="started_by_schedule").count() == 1
    assert AuditEntry.objects.filter(action="workspace.start-by-schedule").count() == 1
