"""The ten steps as a page shows them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quotas.models import Claim
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import STEPS, Event, Phase
from workspaces.pages.timeline import by_run, start_took, timeline
from workspaces.state.live import write_events
from workspaces.state.story import add_event

HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.WAITING, ["done", "waiting", *["todo"] * 8]),
        (Phase.STARTING, [*["done"] * 5, "current", *["todo"] * 4]),
        (Phase.FAILED, [*["done"] * 5, "failed", *["todo"] * 4]),
        (Phase.READY, ["done"] * 10),
    ],
)
def test_states_by_phase(cast: Cast, phase: Phase, expected: list[str]) -> None:
    workspace = make_workspace(cast, cast.bob, phase)
    assert [line.state for line in timeline(workspace, workspace.events.all())] == expected


def test_a_step_took_from_the_end_of_the_one_before(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    first = workspace.created_at
    for number, event in enumerate(workspace.events.all()):
        Event.objects.filter(pk=event.pk).update(at=first + timedelta(seconds=2 * number))
    lines = timeline(workspace, workspace.events.all())
    assert [line.took for line in lines] == [None, *[timedelta(seconds=2)] * 9]
    workspace.ready_at = first + timedelta(seconds=18)
    assert start_took(workspace, workspace.events.all()) == timedelta(seconds=18)


def test_a_trouble_on_the_way_and_an_earlier_run_do_not_count(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    add_event(workspace, "sent_back", step=STEPS[3], level=Event.Level.WARNING)
    write_events(workspace)
    before = timeline(workspace, workspace.events.exclude(code="sent_back"))
    assert timeline(workspace, workspace.events.all()) == before
    workspace.run = None
    assert {line.took for line in timeline(workspace, workspace.events.all())} == {None}


def test_events_are_grouped_by_run_with_the_time_that_it_held_its_claim(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    claim = Claim.objects.get(holder_id=workspace.pk)
    released = Claim(
        created_at=claim.created_at, admitted_at=claim.created_at, released_at=claim.created_at + HOUR
    )
    rows = [Event(run=run, number=9 - index) for index, run in enumerate([claim.pk, claim.pk, released.pk])]
    newest, oldest = by_run([(row, {}) for row in rows], {claim.pk: claim, released.pk: released})
    assert [row.number for row, _told in newest.events] == [9, 8]
    assert (newest.took, oldest.took) == (None, HOUR)
