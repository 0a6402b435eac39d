"""Random operations on claims, several at once, each in its own thread and connection, as separate processes.

Some claims have several members. Two clusters, three pools of which two share nodes, two tenants with quotas, borrowing
and bookings, and limits over both clusters for the tenants and for each of their people. A process may die in the
middle of a transaction. Passes run only when Berth itself enqueued them, so a change that forgets to enqueue one is
found too. A brute-force oracle checks that all claims that could start have started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid5

import pytest
from django.db import transaction
from django.db.models import BigIntegerField, F, Sum
from django.utils import timezone
from django_q.models import OrmQ
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from accounts.access import Actor
from accounts.errors import Conflict, Refusal
from accounts.models import Tenant
from clusters.models import Cluster, Node, PodUsage
from quotas import admission, passes, reclaim
from quotas.accounting import ledger
from quotas.models import Booking, Claim, Pool, Quota, TenantLimit
from quotas.pools import opening
from quotas.tasks import admission_pass
from tests.cast import NETWORKS
from tests.crew import Crew, crew, play_examples
from tests.quotas.around_claims import (
    KilledError,
    Signalled,
    backend,
    clear,
    in_order,
    kill_one_but,
    nothing_was_admitted_while_closed,
    take_task,
    until_killed,
)
from tests.quotas.claim_operations import MOST, OPERATIONS, RELEASE, REQUEST, Operation
from tests.quotas.holding import Most, allowed_now, at_every_admission_since, could_start, held_now
from tests.shared.stage import GPU, Stage

THREADS = 6
LONG_AGO = "2026-01-01T00:00:00Z"
HOLDERS = UUID("00000000-0000-4000-8000-000000000000")

MINUTE = timedelta(minutes=1)
BIG = BigIntegerField()


MAY_COME_LATE = ("renew", "send_back", "goes_down")


class ClaimsAtOnce(RuleBasedStateMachine):
    """State machine whose steps are batches of operations that begin together."""

    stage: Stage
    crew: Crew
    ran: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        cast = self.stage.cast
        self.people: list[tuple[Actor, Tenant]] = [
            (cast.bob, cast.demo),
            (cast.alice, cast.demo),
            (cast.carol, cast.second),
        ]
        self.pools = list(Pool.objects.order_by("slug"))
        clear()
        self.ends: Counter[UUID] = Counter()
        self.renewed: set[UUID] = set()
        self.signalled = Signalled()
        self.pass_was_lost = False
        self.own_backend = backend()
        self.ran["examples"] += 1

    def teardown(self) -> None:
        try:
            self.becomes_quiet()
        finally:
            self.signalled.stop()

    @initialize(limited=st.booleans(), workspaces=MOST, batch=st.lists(REQUEST, min_size=4, max_size=THREADS))
    def begin(self, limited: bool, workspaces: int | None, batch: list[Operation]) -> None:
        """Start with or without a tenant's limit: without, only the clusters' locks keep passes apart."""
        if limited:
            TenantLimit.objects.create(tenant=self.stage.cast.demo, workspaces=workspaces)
        self.passes_at_once(batch, calm=True)

    @rule(batch=st.lists(OPERATIONS, min_size=4, max_size=THREADS), calm=st.booleans())
    def at_once(self, batch: list[Operation], calm: bool) -> None:
        began, most, before = timezone.now(), Most(), {claim.pk: claim for claim in Claim.objects.all()}
        self.known = in_order(before.values())
        self.allow(most, batch)
        jobs = [partial(self.one(name), **arguments) for name, arguments in batch]
        done = self.crew.at_once(jobs, meanwhile=lambda: most.holds(held_now(), "in between"))
        self.ran["operations"] += len(batch)
        most.also(allowed_now())
        most.holds(held_now(), "afterwards")
        for moment, sums in at_every_admission_since(began):
            most.holds(sums, moment)
        self.results_agree(before, list(zip(batch, done, strict=True)))
        self.each_change_was_signalled_once()
        self.ledger_has_the_time_of_each_that_ended()
        nothing_was_admitted_while_closed(self.renewed)
        if calm:
            self.becomes_quiet()

    @rule(batch=st.lists(st.one_of(REQUEST, RELEASE), min_size=3, max_size=THREADS), calm=st.booleans())
    def passes_at_once(self, batch: list[Operation], calm: bool) -> None:
        """Run the batch, then one worker per pool at once, as two pools share nodes."""
        self.at_once(batch, calm=False)
        self.at_once([("work", {})] * len(self.pools), calm=calm)

    def allow(self, most: Most, batch: list[Operation]) -> None:
        """Allow what each change of the batch allows alone: any of them may be the last for a moment."""
        for name, arguments in batch:
            if name in ("change_quota", "change_limit", "node_changes"):
                with transaction.atomic():
                    self.one(name)(**arguments, enqueues=False)
                    most.also(allowed_now())
                    transaction.set_rollback(True)

    def one(self, name: str) -> Callable[..., Any]:
        return until_killed(getattr(self, name))

    # --- operations, each in a thread of its own

    def request(
        self, who: int, pool: int, gpus: int, nodes: int, priority: int, minutes: int | None, holder: int
    ) -> UUID:
        actor, tenant = self.people[who]
        with transaction.atomic():
            claim = self.stage.request(
                gpus,
                by=actor,
                tenant=tenant,
                pool=Pool.objects.get(pk=self.pools[pool].pk),
                nodes=nodes,
                holder_kind=Claim.Holder.WORKSPACE if nodes == 1 else Claim.Holder.JOB,
                priority=priority,
                max_runtime_minutes=minutes,
                holder_id=uuid5(HOLDERS, str(holder)),
            )
        return claim.pk

    def work(self) -> None:
        """Run the next task of the queue, as a worker does."""
        if (pool := take_task()) is not None:
            admission_pass(pool)

    def process_dies(self) -> None:
        """Kill a process in the middle of a transaction, at any point."""
        others = [self.own_backend, backend()]
        for _look in range(40):
            if kill_one_but(others):
                self.pass_was_lost = True
                return

    def worker_dies(self) -> None:
        """Lose a task that a worker had taken."""
        if take_task() is not None:
            self.pass_was_lost = True

    def release(self, which: int) -> bool:
        return admission.release(self.claim(which).pk, "stopped")

    def renew(self, which: int) -> Claim:
        return admission.renew(self.claim(which))

    def send_back(self, which: int) -> Claim:
        return admission.send_back(self.claim(which), "unschedulable", {})

    def goes_down(self, which: int) -> tuple[Claim, Claim] | None:
        """End a run that had to give its units back."""
        stopping = sorted(self.signalled.to_stop)
        if not stopping:
            return None
        ended = Claim.objects.get(pk=stopping[which % len(stopping)])
        return ended, admission.give_back(ended)

    def reclaims_are_due(self) -> None:
        Claim.objects.filter(state="admitted").exclude(reclaim_at=None).update(reclaim_at=LONG_AGO)
        reclaim.on_tick()

    def book(self, who: int, pool: int, begins: int, units: int) -> None:
        actor, tenant = self.people[who]
        starts_at = timezone.now() + begins * MINUTE
        with transaction.atomic():
            admission.lock(self.pools[pool].cluster_id)
            Booking.objects.create(
                pool=self.pools[pool], tenant=tenant, created_by=actor.user, title="class",
                starts_at=starts_at, ends_at=starts_at + 60 * MINUTE, units_each=units,
            )  # fmt: skip
            passes.want(self.pools[pool].pk)

    def cancel(self, which: int) -> None:
        for booking in Booking.objects.filter(cancelled_at=None).order_by("pk")[which : which + 1]:
            with transaction.atomic():
                admission.lock(booking.pool.cluster_id)
                Booking.objects.filter(pk=booking.pk).update(cancelled_at=timezone.now())
                passes.want(booking.pool_id)

    def doubt(self, which: int) -> bool:
        return admission.flag_unproven_end(self.claim(which).pk)

    def confirm_end(self, which: int) -> bool:
        return admission.confirm_end(self.stage.cast.admin, self.claim(which))

    def change_quota(self, who: int, pool: int, gpus: int, borrows: int, enqueues: bool = True) -> None:
        quotas = Quota.objects.filter(tenant=self.people[who][1], pool=self.pools[pool])
        with transaction.atomic():
            quotas.update(nominal_gpus=gpus, borrowing_limit_gpus=borrows)
            if enqueues:
                passes.want_everywhere()

    def change_limit(
        self,
        who: int,
        cores: int | None,
        workspaces: int | None,
        person_gpus: int | None,
        enqueues: bool = True,
    ) -> None:
        with transaction.atomic():
            TenantLimit.objects.filter(tenant=self.people[who][1]).update(
                cpu_millicores=cores and cores * 1000, workspaces=workspaces, person_gpus=person_gpus
            )
            if enqueues:
                passes.want_everywhere()

    def open_or_close(self, pool: int, is_open: bool) -> bool:
        return opening.set_open(self.stage.cast.admin, self.pools[pool], is_open=is_open)

    def node_changes(self, node: int, ready: bool, gpus: int, enqueues: bool = True) -> None:
        with transaction.atomic():
            found = Node.objects.select_for_update().order_by("name")[node]
            found.ready, found.allocatable = ready, found.allocatable | {GPU: gpus}
            found.save()
            if enqueues:
                passes.on_capacity_changed(found.cluster)

    def pod_is_seen(self, which: int) -> None:
        """See a pod of the claim, or those of the first members of several."""
        claim = self.claim(which)
        if claim.node:
            pods = [
                PodUsage(
                    cluster=claim.pool.cluster, uid=f"{claim.pk}-{rank}", name=f"{claim.pk}-{rank}", node=node,
                    run=claim.pk, requests={"cpu": 1000, GPU: claim.units},
                )
                for rank, node in enumerate(claim.nodes[: 1 + which])
            ]  # fmt: skip
            with transaction.atomic():
                PodUsage.objects.bulk_create(pods, ignore_conflicts=True)
                passes.on_capacity_changed(claim.pool.cluster)  # as the watcher reports any pod

    def pods_are_gone(self) -> None:
        """Delete the pods of runs that have ended."""
        live = Claim.objects.filter(state="admitted").values("pk")
        for cluster in Cluster.objects.all():
            with transaction.atomic():
                if PodUsage.objects.filter(cluster=cluster).exclude(run__in=live).delete()[0]:
                    passes.on_capacity_changed(cluster)

    def time_goes_by(self) -> None:
        Claim.objects.exclude(not_before=None).update(not_before=LONG_AGO)
        passes.on_tick()

    def is_settled_by_any_clock(self, which: int, minutes: int) -> None:
        ledger.settle(self.claim(which).pk, timezone.now() + minutes * MINUTE)

    def claim(self, which: int) -> Claim:
        """Return a claim as read before this batch; an unsaved one if there was none."""
        return self.known[which % len(self.known)] if self.known else Claim(pool=self.pools[0])

    # --- what must hold

    def results_agree(self, before: dict[UUID, Claim], done: list[tuple[Operation, Future[Any]]]) -> None:
        """Check that the results fit some serial order: an end has one winner, and losers have a reason."""
        now = {claim.pk: claim for claim in Claim.objects.all()}
        losers: list[tuple[Operation, UUID]] = []
        survived = [
            (what, future) for what, future in done if not isinstance(future.exception(), KilledError)
        ]
        for operation, future in survived:
            (name, arguments), error = operation, future.exception()
            if name == "request":
                self.request_agrees(arguments, error, before, now, future)
            elif error is not None and not (name in MAY_COME_LATE and isinstance(error, Conflict)):
                raise AssertionError(f"{operation} raised") from error
            elif name == "goes_down" and error is None and future.result():
                self.went_down(*future.result())
            if name not in ("release", "renew", "send_back", "confirm_end"):
                continue
            claim = self.claim(arguments["which"])
            if error is None and (successor := future.result()):
                self.ends[claim.pk] += 1
                if name in ("renew", "send_back"):
                    self.succeeds(name, claim, now[successor.pk])
            else:
                losers.append((operation, claim.pk))
        ended = {pk for pk, claim in now.items() if claim.state == "released"}
        if len(survived) < len(done):  # a killed operation has no result, so the rows count
            self.ends.update(dict.fromkeys(ended - self.ends.keys(), 1))
        assert self.ends == dict.fromkeys(ended, 1), f"ended {self.ends}, released {ended}"
        for (name, arguments), pk in losers:
            never_ran = name in ("renew", "send_back") and pk in before and before[pk].state == "waiting"
            undoubted = name == "confirm_end" and (pk not in before or not before[pk].end_unproven_since)
            assert pk in ended or pk not in before or never_ran or undoubted, f"{name} {arguments} of {pk}"

    def request_agrees(
        self,
        arguments: dict[str, Any],
        error: BaseException | None,
        before: dict[UUID, Claim],
        now: dict[UUID, Claim],
        future: Future[Any],
    ) -> None:
        if error is None:
            assert future.result() in now and future.result() not in before
            return
        assert isinstance(error, Refusal), error
        if isinstance(error, Conflict):
            holder = uuid5(HOLDERS, str(arguments["holder"]))
            assert any(claim.holder_id == holder for claim in now.values()), "refused beside nobody"

    def succeeds(self, name: str, claim: Claim, successor: Claim) -> None:
        assert all(
            getattr(successor, kept) == getattr(claim, kept)
            for kept in ("holder_id", "units", "members", "place")
        )
        if name == "renew":
            self.renewed.add(successor.pk)
            assert successor.nodes == Claim.objects.get(pk=claim.pk).nodes

    def went_down(self, ended: Claim, successor: Claim) -> None:
        """Check that the successor waits in front, at its old place."""
        self.ends[ended.pk] += 1
        self.succeeds("goes_down", ended, successor)
        assert (successor.returns_first, successor.attempt) == (True, 0)

    def each_change_was_signalled_once(self) -> None:
        """Check that each start and each end was signalled once."""
        rows = Claim.objects.all()
        assert self.signalled.admitted == dict.fromkeys((c.pk for c in rows if c.admitted_at), 1)
        assert self.signalled.released == dict.fromkeys((c.pk for c in rows if c.state == "released"), 1)

    def ledger_has_the_time_of_each_that_ended(self) -> None:
        """Check the time, and that the units of each member are counted once."""
        ended = Claim.objects.filter(state="released", admitted_at__isnull=False)
        of_units = Sum(F("ledger__microseconds") * F("ledger__units"), default=0, output_field=BIG)
        for claim in ended.annotate(microseconds=Sum("ledger__microseconds", default=0), of_units=of_units):
            assert claim.released_at is not None and claim.admitted_at is not None
            held = max(claim.released_at - claim.admitted_at, timedelta(0))
            assert timedelta(microseconds=int(claim.microseconds)) == held
            assert timedelta(microseconds=int(claim.of_units)) == held * claim.units * claim.members

    def becomes_quiet(self) -> None:
        """Work off the task queue without new requests (a tick only if a pass was lost). Then nobody waits in vain."""
        self.pods_are_gone()
        if self.pass_was_lost:
            Pool.objects.exclude(pass_queued_at=None).update(pass_queued_at=LONG_AGO)
            passes.on_tick()
            self.pass_was_lost = False
        while OrmQ.objects.exists():
            self.work()
        assert not (left := could_start()), f"waits and could start: {left}"
        self.each_change_was_signalled_once()


@pytest.fixture
def at_once(stage: Stage) -> Iterator[Callable[..., Counter[str]]]:
    """Runs a number of examples and batches. Returns counts of what was run."""
    far = Cluster.objects.create(slug="far", name="Far", **NETWORKS)
    gpu = Node.objects.get(name="gpu-1")
    stage.node("gpu-far", cluster=far, labels=gpu.labels)
    for pool in (stage.pool, stage.another_pool("b-shares-nodes"), stage.another_pool("c-far", cluster=far)):
        for tenant in (stage.cast.demo, stage.cast.second):
            stage.quota(5, tenant=tenant, pool=pool)

    with crew(THREADS) as threads:

        def play(*, examples: int, steps: int) -> Counter[str]:
            class Playing(ClaimsAtOnce):
                ran: Counter[str] = Counter()

            Playing.stage, Playing.crew = stage, threads
            play_examples(Playing, examples=examples, steps=steps)
            return Playing.ran

        yield play


@pytest.mark.django_db(transaction=True)
def test_claims_at_once(at_once: Callable[..., Counter[str]]) -> None:
    at_once(examples=2, steps=4)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_claims_at_once_for_a_while(at_once: Callable[..., Counter[str]]) -> None:
    at_once(examples=5, steps=10)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_claims_at_once_for_long(
    at_once: Callable[..., Counter[str]], found: Callable[[str, str], None]
) -> None:
    ran = at_once(examples=25, steps=15)
    found(
        "claims: any operations in six threads at once",
        f"{ran['examples']} examples, {ran['operations']} operations: nothing exceeded, nobody waits in vain",
    )
