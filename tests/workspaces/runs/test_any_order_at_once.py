"""Several people, looks and the queue at the same workspaces at once, each with its own connection.

The steps that `test_any_order.py` tries one after the other happen here at once. At every moment a row is one of
the combinations below; steps never go back within a run; events are numbered without a gap; at most one pod runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial, wraps
from threading import RLock
from typing import Any
from unittest import TestCase
from uuid import UUID

import pytest
from django.db.models import OuterRef, Subquery
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from accounts.errors import Refusal
from accounts.models import AuditEntry
from quotas import admission
from quotas.models import Claim, LedgerEntry, Pool
from tests.cast import Cast
from tests.crew import Crew, crew, play_examples
from tests.shared.faults import AWAY, REFUSED, Killed, after, is_alive
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import PlayedApi
from tests.workspaces.runs.faults import ROUNDS_UNTIL_QUIET, check_events
from tests.workspaces.specs import spec
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.clone import clone
from workspaces.launch.launch import launch
from workspaces.models import STEPS, Workspace
from workspaces.runs import lifecycle, lifetime
from workspaces.runs.changes import Change, Lifetime, change

THREADS = 6
MOST_WORKSPACES = 3

# Legal rows. (phase, ending): desired states, steps, states of the run's claim.
ANY = frozenset(STEPS)
LEGAL: dict[tuple[str, str], tuple[set[str], frozenset[str], set[str]]] = {
    ("waiting", ""): ({"running"}, frozenset(["admission"]), {"waiting"}),
    ("starting", ""): ({"running"}, frozenset(STEPS[2:]), {"admitted"}),
    ("ready", ""): ({"running"}, frozenset(["ready"]), {"admitted"}),
    ("stopped", ""): ({"stopped"}, ANY, {"released"}),
    ("failed", ""): ({"stopped"}, ANY, {"released"}),
    ("deleted", ""): ({"deleted"}, ANY, {"released"}),  # and deleted_at is set
    ("stopping", "stop"): ({"stopped", "running"}, ANY, {"admitted"}),  # running: started again meanwhile
    ("stopping", "restart"): ({"running"}, ANY, {"admitted"}),
    ("starting", "interrupted"): ({"running"}, ANY, {"admitted"}),
    ("waiting", "requeue"): ({"running"}, ANY, {"admitted"}),
    ("failed", "failed"): ({"stopped", "running"}, ANY, {"admitted"}),
    ("deleting", "delete"): ({"deleted"}, ANY, {"waiting", "admitted", "released"}),
}


class SharedApi(PlayedApi):
    """Simulated API with one call at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()


def one_at_a_time(name: str) -> Callable[..., Any]:
    call = getattr(PlayedApi, name)

    @wraps(call)
    def alone(self: SharedApi, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            return call(self, *arguments, **named)

    return alone


for _name, _value in vars(PlayedApi).items():
    if callable(_value) and not _name.startswith("_"):
        setattr(SharedApi, _name, one_at_a_time(_name))

Operation = tuple[str, dict[str, Any]]


def of(name: str, /, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


WHICH = st.integers(0, MOST_WORKSPACES - 1)
WORK, STEP = of("work", which=WHICH), of("cluster_goes_on")
OPERATIONS = st.one_of(
    *[WORK] * 6,
    *[STEP] * 3,
    *[of("pass_over_the_queue")] * 2,
    of("start", which=WHICH),
    of("stop", which=WHICH),
    of("restart", which=WHICH),
    of("delete", which=WHICH, delete_disk=st.booleans()),
    of("resize", which=WHICH, flavor=st.sampled_from(["a100-1", "a100-2"])),
    of("rename", which=WHICH, name=st.sampled_from(["exp-1", "other"])),
    of("give_lifetime", which=WHICH, minutes=st.sampled_from([None, 1, 60])),
    of("extend", which=WHICH),
    of("clone", which=WHICH),
    of("lifetimes_are_over"),
    of("calls_fail", calls=st.integers(0, 12), error=st.sampled_from([AWAY, REFUSED, Killed()])),
    of("pod_is_deleted_by_hand"),
    of("pod_ends_by_itself", reason=st.sampled_from(["Evicted", "OutOfcpu"])),
)


class AnyOrderAtOnce(RuleBasedStateMachine):
    cast: Cast
    crew: Crew
    api: SharedApi
    ran: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        clear()
        type(self).api = SharedApi()
        launch(self.cast.alice, spec(disk_mib=1024))
        self.furthest: Counter[UUID] = Counter()
        self.ran["examples"] += 1

    def teardown(self) -> None:
        self.becomes_quiet()

    @rule(rounds=st.integers(1, 9))
    def all_goes_well(self, rounds: int) -> None:
        for _ in range(rounds):
            self.pass_over_the_queue()
            self.work_off()
            self.cluster_goes_on()
        self.is_sound()

    @rule(batch=st.lists(OPERATIONS, min_size=3, max_size=THREADS))
    def at_once(self, batch: list[Operation]) -> None:
        self.known = list(Workspace.objects.order_by("created_at"))
        jobs = [partial(getattr(self, name), **arguments) for name, arguments in batch]
        with TestCase().assertNoLogs("workspaces.runs.reconcile", level="ERROR"):  # a fault is logged
            for operation, done in zip(batch, self.crew.at_once(jobs, self.rows_are_legal), strict=True):
                self.went_well(operation, done)
        self.api.before_call = lambda: None
        self.ran["operations"] += len(batch)
        self.is_sound()

    def went_well(self, operation: Operation, done: Future[Any]) -> None:
        expected = Killed if operation[0] == "work" else Refusal
        if (error := done.exception()) is not None and not isinstance(error, expected):
            raise AssertionError(f"{operation} raised {error!r}") from error

    # --- people

    def workspace(self, which: int) -> Workspace:
        return self.known[which % len(self.known)]

    def start(self, which: int) -> None:
        lifecycle.start(self.cast.alice, self.workspace(which))

    def stop(self, which: int) -> None:
        lifecycle.stop(self.cast.alice, self.workspace(which))

    def restart(self, which: int) -> None:
        lifecycle.restart(self.cast.alice, self.workspace(which))

    def delete(self, which: int, delete_disk: bool) -> None:
        lifecycle.delete(self.cast.alice, self.workspace(which), delete_disk=delete_disk)

    def resize(self, which: int, flavor: str) -> None:
        change(self.cast.alice, self.workspace(which), Change(size=SizeAsked(flavor=flavor)))

    def rename(self, which: int, name: str) -> None:
        change(self.cast.alice, self.workspace(which), Change(name=name))

    def give_lifetime(self, which: int, minutes: int | None) -> None:
        change(self.cast.alice, self.workspace(which), Change(lifetime=Lifetime(minutes=minutes)))

    def extend(self, which: int) -> None:
        lifetime.extend(self.cast.alice, self.workspace(which), 60)

    def clone(self, which: int) -> None:
        if len(self.known) < MOST_WORKSPACES:
            clone(self.cast.alice, self.workspace(which))

    # --- Berth

    def pass_over_the_queue(self) -> None:
        Claim.objects.exclude(not_before=None).update(not_before=None)
        admission.admit(self.cast.pool.pk)

    def work(self, which: int) -> None:
        """Look at one. Two looks at the same may run at once, as by a process that lost the lead a moment ago."""
        look(self.workspace(which).pk, PlayedMirror(self.api))

    def work_off(self) -> None:
        for row in Workspace.objects.all():
            look(row.pk, PlayedMirror(self.api))

    def lifetimes_are_over(self) -> None:
        now = timezone.now()
        Workspace.objects.filter(stops_at__isnull=False).update(stops_at=now, lifetime_due_at=now)
        lifetime.pass_due()

    # --- the cluster

    def cluster_goes_on(self) -> None:
        self.api.step()

    def calls_fail(self, calls: int, error: BaseException) -> None:
        self.api.before_call = after(calls, error)

    def pod_is_deleted_by_hand(self) -> None:
        with self.api.lock:
            for pod in self.api.of("Pod")[:1]:
                self.api.mark_deleted(pod)

    def pod_ends_by_itself(self, reason: str) -> None:
        with self.api.lock:
            for pod in list(filter(is_alive, self.api.of("Pod")))[:1]:
                self.api.end_pod(pod, reason)

    # --- always

    def rows_are_legal(self) -> None:
        """Check rows and the states of their claims, as one statement sees them."""
        claims = Claim.objects.filter(pk=OuterRef("run")).values("state")
        rows = Workspace.objects.annotate(claim=Subquery(claims))
        names = ("pk", "run", "phase", "ending", "desired", "step", "claim", "deleted_at")
        for pk, run, phase, ending, desired, step, claim, deleted_at in rows.values_list(*names):
            wanted, steps, states = LEGAL[phase, ending]
            row = f"{pk}: {phase} {ending} {desired} {step}, claim {claim}"
            assert desired in wanted and step in steps and claim in states, row
            assert bool(deleted_at) == ((phase, ending) == ("deleted", "")), row
            assert STEPS.index(step) >= self.furthest[run], f"{row}: a step went back"
            self.furthest[run] = STEPS.index(step)

    def is_sound(self) -> None:
        self.rows_are_legal()
        pods = list(filter(is_alive, self.api.of("Pod")))
        of_workspaces = [pod["metadata"]["labels"]["berth.dev/workspace"] for pod in pods]
        assert len(set(of_workspaces)) == len(of_workspaces), "two pods of a workspace"
        for pod in pods:
            assert Claim.objects.get(pk=pod["metadata"]["labels"]["berth.dev/run"]).state == "admitted"
        for row in Workspace.objects.all():
            check_events(row)
        live = Claim.objects.exclude(state="released")
        assert not live.exclude(pk__in=Workspace.objects.values("run")).exists(), "a claim that no row knows"

    def becomes_quiet(self) -> None:
        """Run until quiet: there are no more requests, and nothing fails."""
        for _ in range(ROUNDS_UNTIL_QUIET):
            self.pass_over_the_queue()
            self.work_off()
            self.cluster_goes_on()
        self.is_sound()
        kept = {str(row.pk) for row in Workspace.objects.exclude(desired="deleted")}
        for row in Workspace.objects.all():
            quiet = {
                "running": ("ready", "waiting"),
                "stopped": ("stopped", "failed"),
                "deleted": ("deleted",),
            }
            assert row.ending == "" and row.phase in quiet[row.desired], (
                f"{row.phase} {row.ending} {row.message_code}"
            )
        left = self.api.of("Service", "Secret")
        assert {body["metadata"]["labels"]["berth.dev/workspace"] for body in left} <= kept
        running = {str(row.pk) for row in Workspace.objects.filter(desired="running")}
        pods = self.api.of("Pod")
        assert {body["metadata"]["labels"]["berth.dev/workspace"] for body in pods} <= running


def clear() -> None:
    for model in (Workspace, LedgerEntry, Claim, AuditEntry):
        model.objects.all().delete()
    Pool.objects.update(pass_queued_at=None)


@pytest.fixture
def play(cast: Cast) -> Iterator[Callable[..., Counter[str]]]:
    """Function that runs so many examples of so many batches and returns counts of what ran."""
    cast.pool.flavors.create(slug="a100-2", name="Two A100", units=2, cpu_millicores=8000, memory_mib=32_768)
    with crew(THREADS) as threads:

        def play(*, examples: int, steps: int) -> Counter[str]:
            class Playing(AnyOrderAtOnce):
                ran: Counter[str] = Counter()

            Playing.cast, Playing.crew = cast, threads
            play_examples(Playing, examples=examples, steps=steps)
            return Playing.ran

        yield play


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_any_order_at_once(play: Callable[..., Counter[str]]) -> None:
    play(examples=1, steps=4)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_any_order_at_once_for_long(
    play: Callable[..., Counter[str]], found: Callable[[str, str], None]
) -> None:
    ran = play(examples=20, steps=15)
    found(
        "workspaces: people, workers and the cluster in six threads at once",
        f"{ran['examples']} examples, {ran['operations']} operations: rows legal at every moment, quiet as wanted",
    )
