"""Preemption of a run on borrowed GPUs: a warning, the end when it is time, and a place in front of the queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.notices import inbox
from accounts.notices.models import Notice
from quotas import admission, reclaim
from quotas.models import Claim, Quota
from tests.workspaces.play import Play, leave_one_gpu, request_of_carol
from workspaces import notices
from workspaces.api.representation import with_related, workspaces_json
from workspaces.models import Desired, Ending, Phase, Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db


class Asked:
    """A ready workspace on a borrowed GPU, the only one there is; the GPU's owner may ask for it."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.row = play.begin_ready()
        leave_one_gpu(play.cast, self.row.node)
        Quota.objects.filter(tenant=play.cast.demo).update(nominal_gpus=0, borrowing_limit_gpus=4)

    def ask(self) -> Claim:
        """Let the owner request its GPU. Return our claim after the admission pass."""
        self.owners = request_of_carol(self.play.cast)
        return self.play.claim()

    def spare(self) -> None:
        """Let the owner withdraw its request."""
        admission.release(self.owners.pk, "withdrawn")
        admission.admit(self.play.cast.pool.pk)

    def time_has_come(self) -> None:
        Claim.objects.filter(pk=self.play.claim().pk).update(reclaim_at=timezone.now())
        reclaim.on_tick()

    def shown(self) -> dict[str, Any]:
        (body,) = workspaces_json(with_related(Workspace.objects.all()), self.play.cast.alice)
        return body


@pytest.fixture
def asked(play: Play) -> Asked:
    return Asked(play)


def test_the_owner_is_notified_of_a_preemption_and_its_time(asked: Asked) -> None:
    claim = asked.ask()
    admission.admit(asked.play.cast.pool.pk)  # a second pass reports nothing new
    assert claim.reclaim_at is not None
    assert abs(claim.reclaim_at - timezone.now() - timedelta(minutes=10)) < timedelta(seconds=30)
    assert asked.play.told("asked_back_owner_waits") == 1
    assert asked.shown()["reclaim"]["code"] == "owner_waits"
    lines, _last = inbox.page(asked.play.cast.alice.user)
    words = lines[0][1]
    assert words.title == "“exp” has to return its GPUs soon"
    assert "needs them: it stops at" in words.text
    assert not words.is_past


def test_a_preempted_run_stops_with_its_files_and_waits_in_front(asked: Asked) -> None:
    before = asked.ask()
    asked.time_has_come()
    row = asked.play.row
    assert (row.desired, row.ending, row.phase) == (Desired.RUNNING, Ending.RECLAIM, Phase.STOPPING)
    assert asked.play.claim().state == "admitted"  # its units come back only with the proven end
    asked.play.until(lambda row: row.run != before.pk)
    after = asked.play.claim()
    assert (after.state, after.returns_first, after.place) == ("waiting", True, before.place)
    assert (after.attempt, after.not_before, after.reclaim_at, after.reclaim_code) == (0, None, None, "")
    admission.admit(asked.play.cast.pool.pk)
    assert Claim.objects.get(pk=asked.owners.pk).state == "admitted"
    admission.release(asked.owners.pk, "stopped")
    asked.play.until_phase("ready")
    assert asked.play.told("waits_again") == 1
    assert asked.play.api.of("PersistentVolumeClaim")


def test_a_second_tick_while_it_stops_adds_no_event(asked: Asked) -> None:
    asked.ask()
    for _ in range(3):
        asked.time_has_come()
    assert asked.play.told("given_back") == 1


def test_a_preemption_is_cancelled_when_the_request_is_withdrawn(asked: Asked) -> None:
    asked.ask()
    asked.spare()
    reclaim.on_tick()
    assert (asked.play.row.phase, asked.play.claim().reclaim_at) == ("ready", None)
    assert asked.play.told("spared") == 1
    assert asked.shown()["reclaim"] is None
    lines, _last = inbox.page(asked.play.cast.alice.user)
    # The preemption is cancelled; the warning is out of date.
    assert [words.is_past for _notice, words in lines[:2]] == [False, True]


def test_a_preemption_under_way_is_not_cancelled(asked: Asked) -> None:
    asked.ask()
    asked.time_has_come()
    asked.spare()
    assert asked.play.told("spared") == 0
    assert asked.play.row.ending == Ending.RECLAIM


def test_a_restart_keeps_the_units_and_their_end_times(asked: Asked) -> None:
    before, by_budget = asked.ask(), timezone.now() + timedelta(hours=1)
    Claim.objects.filter(pk=before.pk).update(budget_ends_at=by_budget)
    lifecycle.restart(asked.play.cast.alice, asked.play.row)
    asked.play.until(lambda row: row.run != before.pk)
    after = asked.play.claim()
    assert (after.state, after.reclaim_at, after.reclaim_code, after.budget_ends_at) == (
        "admitted",
        before.reclaim_at,
        "owner_waits",
        by_budget,
    )


def test_a_preemption_during_a_restart_is_reported_to_the_next_run(asked: Asked) -> None:
    lifecycle.restart(asked.play.cast.alice, asked.play.row)
    before = asked.ask()
    asked.play.until(lambda row: row.run != before.pk and row.phase == Phase.READY)
    assert asked.play.told("asked_back_owner_waits") == 1


def test_a_preemption_during_a_restart_with_another_size_is_not_reported(asked: Asked) -> None:
    lifecycle.restart(asked.play.cast.alice, asked.play.row)
    Workspace.objects.update(next_size={"units": 2})
    asked.ask()
    assert asked.play.told("asked_back_owner_waits") == 0


def test_a_restart_past_the_time_of_preemption_returns_the_gpus(asked: Asked) -> None:
    before = asked.ask()
    lifecycle.restart(asked.play.cast.alice, asked.play.row)
    asked.time_has_come()
    asked.play.until(lambda row: row.run != before.pk)
    assert (asked.play.claim().returns_first, asked.play.told("waits_again")) == (True, 1)


def test_a_run_interrupted_past_the_time_of_preemption_waits_without_a_clock(asked: Asked) -> None:
    before = asked.ask()
    Workspace.objects.filter(pk=asked.row.pk).update(stops_at=timezone.now() + timedelta(hours=1))
    asked.play.api.end_pod(asked.play.pod(), "Evicted")
    asked.play.until(lambda row: row.ending == Ending.INTERRUPTED)
    asked.time_has_come()
    row = asked.play.until(lambda row: row.run != before.pk)
    assert (asked.play.claim().returns_first, row.phase, row.stops_at) == (True, Phase.WAITING, None)


def test_a_workspace_stopped_during_preemption_leaves_the_queue(asked: Asked) -> None:
    asked.ask()
    asked.time_has_come()
    lifecycle.stop(asked.play.cast.alice, asked.play.row)
    asked.play.until_phase("stopped")
    assert not Claim.objects.filter(holder_id=asked.row.pk).exclude(state="released").exists()


def test_a_workspace_without_notices_sends_none(asked: Asked) -> None:
    Workspace.objects.update(notify=False)
    Notice.objects.all().delete()
    asked.ask()
    assert not Notice.objects.filter(subject=notices.SUBJECT).exists()
