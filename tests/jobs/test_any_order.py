"""Cancel, retry, delete, drain, reclaim in any order at any moment, with watchers killed, clusters away, pods ended by
others and nodes lost.

Judged by the pods: never two of one part at once, and none without an admitted claim. Each claim is released once. An
end from outside costs no retry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import TestCase

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.errors import Refusal
from jobs.access import RELATED
from jobs.cluster.look import look
from jobs.models import OVER, Attempt, Desired, Job
from jobs.runs import expiry, lifecycle
from jobs.submit import JobSpec, submit
from quotas import admission, holders, reclaim
from quotas.models import Claim
from quotas.signals import claim_released
from tests.cast import make_cast
from tests.sampling import rare
from tests.shared.faults import AWAY, REFUSED, Killed, after, is_alive, killed_after
from tests.shared.looking import LateMirror
from tests.shared.played.jobs import PlayedJobs, run_of
from tests.shared.played_api import Object
from workloads.pods.wanted import Shared
from workloads.sizes.sizing import SizeAsked

PARTS = 2
ROUNDS_UNTIL_QUIET = 80
ROUNDS_OF_QUIET = 6


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.released: Counter[str] = Counter()
        claim_released.connect(self.count_release)
        self.cast = make_cast()
        self.api = PlayedJobs()
        self.mirror = LateMirror(self.api)
        self.failed_by_itself: set[str] = set()
        spec = JobSpec(
            tenant="demo", name="train", image="jupyter", size=SizeAsked(flavor="a100-1"), command=["train"],
            completions=PARTS, parallelism=PARTS, retries=1, ttl_hours=None,
        )  # fmt: skip
        self.id = submit(self.cast.alice, spec).pk

    def count_release(self, claim: Claim, **_: Any) -> None:
        self.released[str(claim.pk)] += 1

    def teardown(self) -> None:
        try:
            self.becomes_quiet()
        finally:
            claim_released.disconnect(self.count_release)
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    @property
    def row(self) -> Job:
        return Job.objects.select_related(*RELATED, "secret").get(pk=self.id)

    def work(self) -> None:
        with TestCase().assertNoLogs("jobs.cluster.look", level="ERROR"):  # a fault is logged
            row = self.row
            if row.deleted_at is None:
                look(row, self.mirror, Shared([self.id]))

    # --- people

    @rule(verb=st.sampled_from([lifecycle.cancel, lifecycle.retry, lifecycle.retry_failed]))
    def ask(self, verb: Callable[..., bool]) -> None:
        with suppress(Refusal):
            verb(self.cast.alice, self.row)

    @rule()
    def delete(self) -> None:
        lifecycle.delete(self.cast.alice, self.row)

    @rule()
    def admin_confirms_ends(self) -> None:
        """Confirm what is in doubt, as the node is off by now."""
        for claim in Claim.objects.filter(end_unproven_since__isnull=False).order_by("pk"):
            self.api.ghosts.discard(str(claim.pk))
            admission.confirm_end(self.cast.admin, claim)

    @rule(number=st.integers(0, PARTS - 1))
    def node_is_drained(self, number: int) -> None:
        for claim in self.admitted()[number : number + 1]:
            holders.drain(claim)

    @rule(number=st.integers(0, PARTS - 1))
    def gpus_are_asked_back(self, number: int) -> None:
        for claim in self.admitted()[number : number + 1]:
            Claim.objects.filter(pk=claim.pk).update(reclaim_at=timezone.now(), reclaim_code="owner_waits")
        reclaim.on_tick()

    def admitted(self) -> list[Claim]:
        return list(Claim.objects.filter(state=Claim.State.ADMITTED).order_by("part"))

    # --- Berth

    @rule()
    def time_to_live_passes(self) -> None:
        Job.objects.filter(pk=self.id, ended_at__isnull=False).update(expires_at=timezone.now())
        expiry.delete_expired()

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
        before = Counter(self.released)
        with killed_after(statements):
            self.work()
        for pk in set(self.released) - self.over():  # what the death undid did not happen
            self.released[pk] = before[pk]
        self.released += Counter()

    @rule(calls=st.integers(1, 12), verb=st.sampled_from(["cancel", "retry", "delete"]))
    def look_while_somebody_asks(self, calls: int, verb: str) -> None:
        """Look while a request comes between two calls."""

        def ask() -> None:
            made.append(None)
            if len(made) == calls:
                getattr(lifecycle, verb)(self.cast.alice, self.row)

        made: list[None] = []
        self.api.before_call = ask
        try:
            self.work()
        finally:
            self.api.before_call = lambda: None

    @rule(rounds=st.integers(2, 6))
    def all_goes_well(self, rounds: int) -> None:
        for _ in range(rounds):
            self.pass_over_the_queue()
            self.work()
            self.api.step()

    # --- the cluster

    @rule()
    def cluster_goes_on(self) -> None:
        self.api.step()

    @rule()
    def watch_falls_behind(self) -> None:
        self.mirror.falls_behind()

    @rule()
    def watch_is_current(self) -> None:
        self.mirror.is_current()

    @rule(number=st.integers(0, PARTS - 1), exit_code=st.sampled_from([0, 1]))
    def program_ends(self, number: int, exit_code: int) -> None:
        for pod in self.running()[number : number + 1]:
            if exit_code:
                self.failed_by_itself.add(run_of(pod))
            self.api.end_program(pod, exit_code)

    @rule(number=st.integers(0, PARTS - 1), how=st.sampled_from(["delete", "evict", "vanish", "reject"]))
    def pod_is_ended_by_others(self, number: int, how: str) -> None:
        for pod in self.running()[number : number + 1]:
            if how == "delete":
                self.api.mark_deleted(pod)
            elif how == "evict":
                self.api.disrupt(pod)
            elif how == "vanish":
                self.api.vanish(pod)
            else:
                self.api.end_pod(pod, "UnexpectedAdmissionError")

    @rule(number=st.integers(0, PARTS - 1), how=st.sampled_from(["Background", "Foreground", "Orphan"]))
    def job_is_deleted_by_hand(self, number: int, how: str) -> None:
        for job in self.api.of("Job")[number : number + 1]:
            self.api.delete_job(job, how)

    @rule(number=st.integers(0, PARTS - 1))
    def job_is_suspended_by_hand(self, number: int) -> None:
        for job in self.api.of("Job")[number : number + 1]:
            job["spec"]["suspend"] = True

    def running(self) -> list[Object]:
        pods = [pod for pod in self.api.of("Pod") if pod["status"]["phase"] == "Running"]
        return sorted(pods, key=run_of)

    # --- always

    @invariant()
    def one_pod_per_part_and_only_under_its_claim(self) -> None:
        runs = [run_of(pod) for pod in self.api.of("Pod") if is_alive(pod)] + sorted(self.api.ghosts)
        claims = Claim.objects.in_bulk(runs)
        indexes = [claim.part for claim in claims.values()]
        assert len(set(runs)) == len(runs)
        assert len(set(indexes)) == len(runs)
        assert {claim.state for claim in claims.values()} <= {Claim.State.ADMITTED}

    @invariant()
    def each_claim_is_released_once(self) -> None:
        assert max(self.released.values(), default=1) == 1
        assert self.over() == set(self.released)

    def over(self) -> set[str]:
        over = Claim.objects.filter(state=Claim.State.RELEASED).values_list("pk", flat=True)
        return {str(pk) for pk in over}

    @invariant()
    def only_failures_of_the_program_are_counted(self) -> None:
        counted = Attempt.objects.filter(part__job=self.id, counted=True).values_list("run", flat=True)
        assert {str(run) for run in counted} <= self.failed_by_itself

    @invariant()
    def events_have_no_gap(self) -> None:
        row = self.row
        numbers = list(row.events.order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, row.last_event + 1))

    def becomes_quiet(self) -> None:
        """Let all programs succeed, nothing fail, and nobody ask for more: the job comes to its end."""
        self.mirror.is_current()
        quiet = 0
        for _ in range(ROUNDS_UNTIL_QUIET):
            if quiet > ROUNDS_OF_QUIET:
                break
            before = self.row.changed_at
            self.admin_confirms_ends()
            self.pass_over_the_queue()
            self.work()
            went_on = self.api.step()
            for pod in self.running():
                self.api.end_program(pod, 0)
                went_on = True
            quiet = 0 if went_on or self.row.changed_at != before else quiet + 1
            self.one_pod_per_part_and_only_under_its_claim()
        self.is_over(self.row)

    def is_over(self, row: Job) -> None:
        assert row.phase in OVER, (row.phase, row.message_code, row.message_data)
        assert Claim.objects.exclude(state=Claim.State.RELEASED).count() == 0
        assert [pod for pod in self.api.of("Pod") if is_alive(pod)] == []
        if row.desired == Desired.DELETED:
            assert row.deleted_at
            assert self.api.of("Job", "Secret", "Pod") == []
        self.each_claim_is_released_once()


def play(*, examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, print_blob=False
    )
    run_state_machine_as_test(AnyOrder, settings=options)


@pytest.mark.django_db
@pytest.mark.slow
def test_any_order() -> None:
    play(examples=2, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db
@pytest.mark.parametrize("examples", [10, rare(80)])
def test_any_order_for_long(examples: int) -> None:
    play(examples=examples, steps=60)
