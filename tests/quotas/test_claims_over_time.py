"""Random sequences of requests, passes, ends, restarts and node losses: invariants hold after every step."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts.errors import Refusal
from clusters.models import Node, PodUsage
from quotas import admission, signals
from quotas.accounting import ledger
from quotas.models import Claim, Quota
from tests.shared.stage import GPU, Stage

GPUS = st.integers(1, 4)
WHICH = st.integers(0, 7)


class Claims(RuleBasedStateMachine):
    """A cluster of two nodes with 4 GPUs each, two tenants with a quota, and everything that happens to claims."""

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.stage = Stage()
        self.stage.quota(5)
        self.released: Counter[Any] = Counter()
        # Held one step before: a smaller node or a lowered quota takes nothing back.
        self.held_on: Counter[str] = Counter()
        self.held_by: Counter[Any] = Counter()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    def one(self, state: str, which: int) -> Claim:
        claims = list(Claim.objects.filter(state=state).order_by("place", "created_at"))
        return claims[which % len(claims)]

    def some(self, state: str) -> bool:
        return Claim.objects.filter(state=state).exists()

    @rule(gpus=GPUS, second=st.booleans(), priority=st.integers(0, 1))
    def request(self, gpus: int, second: bool, priority: int) -> None:
        by = self.stage.cast.carol if second else self.stage.cast.alice
        try:
            self.stage.request(gpus, by=by, priority=priority)
        except Refusal:
            assert self.stage.pool.units_per_gpu == 1

    @rule()
    def admit(self) -> None:
        self.stage.admit()
        assert self.stage.admit() == 0, "nothing changed since: somebody was left waiting beside free room"

    @rule(which=WHICH)
    @precondition(lambda self: self.some("admitted"))
    def pod_is_seen(self, which: int) -> None:
        claim = self.one("admitted", which)
        if (
            not PodUsage.objects.filter(run=claim.pk).exists()
            and Node.objects.filter(name=claim.node).exists()
        ):
            self.stage.pod(claim.node, claim.units, run=claim.pk)

    @rule(which=WHICH)
    @precondition(lambda self: self.some("admitted"))
    def ends(self, which: int) -> None:
        claim = self.one("admitted", which)
        PodUsage.objects.filter(run=claim.pk).delete()
        self.released[claim.pk] += admission.release(claim.pk, "stopped")
        self.released[claim.pk] += admission.release(claim.pk, "stopped")

    @rule(which=WHICH)
    @precondition(lambda self: self.some("waiting"))
    def is_withdrawn(self, which: int) -> None:
        claim = self.one("waiting", which)
        self.released[claim.pk] += admission.release(claim.pk, "withdrawn")

    @rule(which=WHICH)
    @precondition(lambda self: self.some("admitted"))
    def restarts(self, which: int) -> None:
        claim = self.one("admitted", which)
        PodUsage.objects.filter(run=claim.pk).delete()
        successor = admission.renew(claim)
        self.released[claim.pk] += 1
        assert (successor.node, successor.units) == (claim.node, claim.units)

    @rule(which=WHICH)
    @precondition(lambda self: self.some("admitted"))
    def is_sent_back(self, which: int) -> None:
        claim = self.one("admitted", which)
        PodUsage.objects.filter(run=claim.pk).delete()
        successor = admission.send_back(claim, "unschedulable", {})
        self.released[claim.pk] += 1
        Claim.objects.filter(pk=successor.pk).update(not_before=None)

    @rule(name=st.sampled_from(["gpu-1", "gpu-2"]), ready=st.booleans())
    def node_comes_or_goes(self, name: str, ready: bool) -> None:
        Node.objects.filter(name=name).update(ready=ready)

    @rule(name=st.sampled_from(["gpu-1", "gpu-2"]), gpus=st.integers(0, 4))
    def node_changes_size(self, name: str, gpus: int) -> None:
        allocatable = Node.objects.get(name=name).allocatable | {GPU: gpus}
        Node.objects.filter(name=name).update(allocatable=allocatable)

    @rule(gpus=st.integers(0, 6))
    def quota_changes(self, gpus: int) -> None:
        self.stage.quota(gpus)

    def units_on(self, name: str) -> int:
        return sum(Claim.objects.filter(state="admitted", node=name).values_list("units", flat=True))

    def units_of(self, tenant: Any) -> int:
        return sum(Claim.objects.filter(state="admitted", tenant=tenant).values_list("units", flat=True))

    @invariant()
    def no_node_gives_more_than_it_has(self) -> None:
        for node in Node.objects.all():
            held = self.units_on(node.name)
            assert held <= max(node.allocatable[GPU], self.held_on[node.name])
            self.held_on[node.name] = held

    @invariant()
    def no_tenant_holds_more_than_its_quota(self) -> None:
        for quota in Quota.objects.all():
            held = self.units_of(quota.tenant_id)
            assert held <= max(quota.nominal_gpus, self.held_by[quota.tenant_id])
            self.held_by[quota.tenant_id] = held

    @rule(which=WHICH, minutes=st.integers(-10_000, 10_000))
    @precondition(lambda self: self.some("admitted"))
    def is_settled_by_any_clock(self, which: int, minutes: int) -> None:
        ledger.settle(self.one("admitted", which).pk, timezone.now() + timedelta(minutes=minutes))

    @invariant()
    def the_ledger_has_the_time_of_each_that_ended(self) -> None:
        ended = Claim.objects.filter(state="released", admitted_at__isnull=False)
        for claim in ended.annotate(microseconds=Sum("ledger__microseconds", default=0)):
            assert claim.released_at is not None and claim.admitted_at is not None
            held = max(claim.released_at - claim.admitted_at, timedelta(0))
            assert timedelta(microseconds=int(claim.microseconds)) == held

    @invariant()
    def every_end_was_told_once(self) -> None:
        ended = Claim.objects.filter(state="released").values_list("pk", flat=True)
        assert dict.fromkeys(ended, 1) == dict(self.released)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Claims, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    for signal in (signals.claim_admitted, signals.claim_waits, signals.claim_released):
        monkeypatch.setattr(signal, "receivers", [])


@pytest.mark.django_db
def test_claims_over_time() -> None:
    run(examples=4, steps=12)


@pytest.mark.slow
@pytest.mark.django_db
def test_claims_over_a_while() -> None:
    run(examples=10, steps=25)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.django_db
def test_claims_over_a_long_time() -> None:
    run(examples=150, steps=50)
