"""Start, stop, restart, delete in any order at any moment, with workers killed, clusters away, pods ended from outside.

After every step: at most one pod may run, and only under an admitted claim; events have no gap, and no step of a
run is reported twice or out of order. When all is quiet again, the cluster has what was wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import TestCase

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from accounts.errors import Refusal
from quotas import admission
from quotas.models import Claim
from storage.models import Volume
from tests.cast import make_cast
from tests.sampling import rare
from tests.shared.faults import AWAY, REFUSED, Killed, after, is_alive, killed_after
from tests.shared.looking import LateMirror
from tests.shared.looking import look as look_once
from tests.shared.played_api import Object, PlayedApi
from tests.workspaces.runs.faults import ROUNDS_OF_QUIET, ROUNDS_UNTIL_QUIET, check_events
from tests.workspaces.specs import spec
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import launch
from workspaces.models import Desired, Workspace
from workspaces.runs import lifecycle, lifetime
from workspaces.runs.changes import Change, Lifetime, change


def place(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.cast = make_cast()
        self.cast.pool.flavors.create(
            slug="a100-2", name="Two A100", units=2, cpu_millicores=8000, memory_mib=32_768
        )
        self.api = PlayedApi()
        self.mirror = LateMirror(self.api)
        self.id = launch(self.cast.alice, spec(disk_mib=1024)).pk

    def teardown(self) -> None:
        try:
            self.becomes_quiet()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    @initialize(ready=st.booleans())
    def begin(self, ready: bool) -> None:
        if ready:
            self.all_goes_well(9)
            assert self.row.phase == "ready"

    @property
    def row(self) -> Workspace:
        return Workspace.objects.get(pk=self.id)

    def work(self) -> None:
        with TestCase().assertNoLogs("workspaces.runs.reconcile", level="ERROR"):  # a fault is logged
            look_once(self.id, self.mirror)

    # --- people

    @rule(verb=st.sampled_from([lifecycle.start, lifecycle.stop, lifecycle.restart]))
    def ask(self, verb: Callable[..., bool]) -> None:
        try:
            verb(self.cast.alice, self.row)
        except Refusal:
            assert self.row.desired == Desired.DELETED

    @rule(delete_disk=st.booleans())
    def delete(self, delete_disk: bool) -> None:
        if self.row.deleted_at is None:
            lifecycle.delete(self.cast.alice, self.row, delete_disk=delete_disk)

    @rule(flavor=st.sampled_from(["a100-1", "a100-2"]))
    def change_the_size(self, flavor: str) -> None:
        with suppress(Refusal):
            change(self.cast.alice, self.row, Change(size=SizeAsked(flavor=flavor)))

    @rule(minutes=st.sampled_from([None, 1, 60]))
    def change_the_lifetime(self, minutes: int | None) -> None:
        with suppress(Refusal):
            change(self.cast.alice, self.row, Change(lifetime=Lifetime(minutes=minutes)))

    @rule()
    def extend(self) -> None:
        with suppress(Refusal):
            lifetime.extend(self.cast.alice, self.row, 60)

    # --- Berth

    @rule(over=st.booleans())
    def time_goes_by(self, over: bool) -> None:
        """Move to the next warning, or to the end of the lifetime."""
        now = timezone.now()
        late = {"lifetime_due_at": now} | ({"stops_at": now} if over else {})
        Workspace.objects.filter(stops_at__isnull=False).update(**late)
        lifetime.pass_due()

    @rule()
    def pass_over_the_queue(self) -> None:
        Claim.objects.update(not_before=None)
        admission.admit(self.cast.pool.pk)

    @rule()
    def look(self) -> None:
        self.work()

    @rule(calls=st.integers(0, 20), error=st.sampled_from([AWAY, REFUSED, Killed()]))
    def look_and_fail(self, calls: int, error: BaseException) -> None:
        self.api.before_call = after(calls, error)
        try:
            self.work()
        except Killed:
            pass
        finally:
            self.api.before_call = lambda: None

    @rule(statements=st.integers(0, 60))
    def look_and_die(self, statements: int) -> None:
        with killed_after(statements):
            self.work()

    @rule(statements=st.integers(2, 12), verb=st.sampled_from([lifecycle.stop, lifecycle.restart, "delete"]))
    def look_while_somebody_asks(self, statements: int, verb: Any) -> None:
        """Look while a request comes between two calls."""

        def ask() -> None:
            calls.append(None)
            if len(calls) == statements:
                self.delete(delete_disk=True) if verb == "delete" else self.ask(verb)

        calls: list[None] = []
        self.api.before_call = ask
        try:
            self.work()
        finally:
            self.api.before_call = lambda: None

    @rule(rounds=st.integers(3, 9))
    def all_goes_well(self, rounds: int) -> None:
        for _ in range(rounds):
            self.pass_over_the_queue()
            self.work()
            self.api.step()

    # --- the cluster

    @rule()
    def cluster_goes_on(self) -> None:
        self.api.step()

    # Impossible steps are skipped in the rule's body: with a precondition, the drawn values would depend on the state.

    @rule()
    def watch_falls_behind(self) -> None:
        """Let the mirror show the objects as they are now, whatever happens to them."""
        self.mirror.falls_behind()

    @rule()
    def watch_is_current(self) -> None:
        self.mirror.is_current()

    @rule(forced=st.booleans())
    def pod_is_deleted_by_hand(self, forced: bool) -> None:
        for pod in self.api.of("Pod")[:1]:
            self.api.delete("Pod", *place(pod), grace_seconds=0 if forced else None)

    @rule(reason=st.sampled_from(["Evicted", "OutOfcpu"]))
    def pod_ends_by_itself(self, reason: str) -> None:
        for pod in filter(is_alive, self.api.of("Pod")[:1]):
            self.api.end_pod(pod, reason)

    # --- always

    @invariant()
    def one_pod_and_only_under_a_claim(self) -> None:
        alive = [pod for pod in self.api.of("Pod") if is_alive(pod)]
        assert len(alive) <= 1
        for pod in alive:
            run = pod["metadata"]["labels"]["berth.dev/run"]
            assert Claim.objects.get(pk=run).state == Claim.State.ADMITTED

    @invariant()
    def events_have_no_gap_and_steps_are_in_order(self) -> None:
        check_events(self.row)

    @invariant()
    def files_go_when_their_person_said_so_and_only_then(self) -> None:
        there = {claim["metadata"]["name"] for claim in self.api.of("PersistentVolumeClaim")}
        for volume in Volume.objects.all():
            is_gone = volume.bin_until is not None
            assert not is_gone or (volume.kind == "disk" and self.row.deleted_at is not None)
            assert is_gone or not volume.bound_to or volume.object_name in there

    @invariant()
    def a_clock_runs_only_while_it_shall_run(self) -> None:
        row = self.row
        assert (row.stops_at is None) == (row.lifetime_due_at is None)
        assert row.stops_at is None or row.desired == Desired.RUNNING

    def becomes_quiet(self) -> None:
        """Run until quiet: there are no more requests, and nothing fails."""
        self.mirror.is_current()
        quiet = 0
        for _ in range(ROUNDS_UNTIL_QUIET):
            if quiet > ROUNDS_OF_QUIET:
                break
            before = self.row.changed_at
            self.pass_over_the_queue()
            self.work()
            went_on = self.api.step()
            quiet = 0 if went_on or self.row.changed_at != before or self.row.dirty_since else quiet + 1
            self.one_pod_and_only_under_a_claim()
            check_events(self.row)
        self.is_as_wanted(self.row)

    def is_as_wanted(self, row: Workspace) -> None:
        live = Claim.objects.exclude(state=Claim.State.RELEASED).count()
        if row.desired == Desired.RUNNING:
            assert (row.phase, row.ending, live) == ("ready", "", 1)
            assert (row.stops_at is None) == (row.max_runtime_minutes is None)
            return
        assert (row.ending, row.next_size) == ("", None)
        assert live == 0
        assert self.api.of("Pod") == []
        if row.desired == Desired.DELETED:
            assert row.deleted_at
            assert self.api.of("Service", "Secret") == []
        else:
            assert row.phase in ("stopped", "failed")


def play(*, examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, print_blob=False
    )
    run_state_machine_as_test(AnyOrder, settings=options)


@pytest.mark.django_db
def test_any_order() -> None:
    play(examples=2, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db
@pytest.mark.parametrize("examples", [10, rare(150)])
def test_any_order_for_long(examples: int) -> None:
    play(examples=examples, steps=60)
