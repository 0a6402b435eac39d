"""Volumes of workspaces changed in any order at any moment, with starts, stops, restarts, evictions and killed looks.

After every step, judged by the pods that may run: a pod that writes to a volume is alone on it, and what a pod mounts
is what its claim holds, no more and no less. When all is quiet, what was wanted is mounted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from unittest import TestCase
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.access import Actor
from accounts.errors import Refusal
from quotas import admission
from quotas.models import Claim
from storage.models import Access, Kind, Mount, Phase, Volume
from storage.mounts import mounting
from storage.mounts.leasing import Leases
from storage.mounts.mounting import MountWish
from tests.cast import make_cast
from tests.sampling import rare
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import Object, PlayedApi
from tests.workspaces.runs.faults import ROUNDS_OF_QUIET, ROUNDS_UNTIL_QUIET, is_alive, killed_after
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.models import Desired, Workspace
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

WHICH = st.integers(0, 2)
# By volume: not mounted, to read, to write.
HOW = st.tuples(*[st.sampled_from(["", "r", "w"])] * 2)


def mounted(pod: Object) -> dict[str, bool]:
    """Return the PVCs that the pod mounts, and whether it only reads them."""
    claims = {
        one["name"]: one["persistentVolumeClaim"]["claimName"]
        for one in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in one
    }
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    return {claims[one["name"]]: bool(one.get("readOnly")) for one in mounts if one["name"] in claims}


class AnyMounts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.cast = make_cast()
        self.api = PlayedApi()
        self.mirror = PlayedMirror(self.api)
        self.volumes = [
            Volume.objects.create(
                tenant=self.cast.demo,
                owner=self.cast.alice.user,
                cluster=self.cast.cluster,
                name=name,
                kind=Kind.DATASET,
                shared="write",
                requested_mib=64,
                phase=Phase.READY,
                access=Access.MANY,
            )
            for name in ("one", "two")
        ]
        self.people = [self.cast.alice, self.cast.alice, self.cast.bob]
        self.ids = [launch(person, spec(name=f"w-{number}")).pk for number, person in enumerate(self.people)]

    def teardown(self) -> None:
        try:
            self.becomes_quiet()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def row(self, which: int) -> Workspace:
        return Workspace.objects.get(pk=self.ids[which])

    def owner(self, which: int) -> Actor:
        return self.people[which]

    def work(self, which: int) -> None:
        with TestCase().assertNoLogs("workspaces.runs.reconcile", level="ERROR"):  # a fault is logged
            look(self.ids[which], self.mirror)

    # --- people

    @rule(which=WHICH, how=HOW)
    def remount(self, which: int, how: tuple[str, ...]) -> None:
        wishes = [
            MountWish(volume=volume.pk, path=f"/{volume.name}", read_only=one == "r")
            for volume, one in zip(self.volumes, how, strict=True)
            if one
        ]
        change(self.owner(which), self.row(which), Change(volumes=wishes))
        kept = mounting.wished(mounting.all_of([self.ids[which]])[self.ids[which]])
        assert sorted(kept, key=str) == sorted(((wish.path[1:], wish) for wish in wishes), key=str)

    @rule(which=WHICH, verb=st.sampled_from([lifecycle.start, lifecycle.stop, lifecycle.restart]))
    def ask(self, which: int, verb: Callable[..., bool]) -> None:
        with suppress(Refusal):
            verb(self.owner(which), self.row(which))

    # --- Berth and the cluster

    @rule()
    def pass_over_the_queue(self) -> None:
        Claim.objects.update(not_before=None)
        admission.admit(self.cast.pool.pk)

    @rule(which=WHICH)
    def look(self, which: int) -> None:
        self.work(which)

    @rule(which=WHICH, statements=st.integers(0, 60))
    def look_and_die(self, which: int, statements: int) -> None:
        with killed_after(statements):
            self.work(which)

    @rule(which=WHICH, calls=st.integers(1, 8), how=HOW)
    def look_while_volumes_are_changed(self, which: int, calls: int, how: tuple[str, ...]) -> None:
        made: list[None] = []

        def called() -> None:
            made.append(None)
            if len(made) == calls:
                self.remount(which, how)

        self.api.before_call = called
        try:
            self.work(which)
        finally:
            self.api.before_call = lambda: None

    @rule(rounds=st.integers(3, 9))
    def all_goes_well(self, rounds: int) -> None:
        for _ in range(rounds):
            self.pass_over_the_queue()
            for which in range(len(self.ids)):
                self.work(which)
            self.api.step()

    @rule()
    def cluster_goes_on(self) -> None:
        self.api.step()

    @rule(which=WHICH, reason=st.sampled_from(["Evicted", "OutOfcpu"]))
    def pod_ends_by_itself(self, which: int, reason: str) -> None:
        for pod in filter(is_alive, self.api.of("Pod")):
            if pod["metadata"]["name"] == self.row(which).object_name:
                self.api.end_pod(pod, reason)

    # --- always

    @property
    def alive(self) -> list[Object]:
        return [pod for pod in self.api.of("Pod") if is_alive(pod)]

    @invariant()
    def a_writer_is_alone(self) -> None:
        users: defaultdict[str, list[bool]] = defaultdict(list)
        for pod in self.alive:
            for claim, read_only in mounted(pod).items():
                users[claim].append(read_only)
        for volume in self.volumes:
            assert all(users[volume.object_name]) or len(users[volume.object_name]) == 1

    @invariant()
    def a_claim_holds_what_its_pod_mounts(self) -> None:
        held: defaultdict[UUID, dict[str, bool]] = defaultdict(dict)
        for lease in Leases().held([volume.pk for volume in self.volumes]):
            held[lease.holder][f"vol-{lease.volume}"] = not lease.writes
        names = {volume.object_name for volume in self.volumes}
        for pod in self.alive:
            holder = UUID(pod["metadata"]["labels"]["berth.dev/workspace"])
            found = mounted(pod)
            assert held[holder] == {name: found[name] for name in found.keys() & names}

    def becomes_quiet(self) -> None:
        quiet = 0
        for _ in range(ROUNDS_UNTIL_QUIET):
            if quiet > ROUNDS_OF_QUIET:
                break
            before = list(Workspace.objects.values_list("changed_at", flat=True).order_by("pk"))
            self.all_goes_well(1)
            self.a_writer_is_alone()
            self.a_claim_holds_what_its_pod_mounts()
            after = list(Workspace.objects.values_list("changed_at", flat=True).order_by("pk"))
            quiet = quiet + 1 if before == after else 0
        for which in range(len(self.ids)):
            self.is_as_wanted(self.row(which))

    def is_as_wanted(self, row: Workspace) -> None:
        changes = Mount.objects.filter(holder=row.pk).exclude(turn="")
        if row.desired == Desired.STOPPED:
            assert (row.phase, changes.exists()) == ("stopped", False)
        elif row.phase == "waiting":
            claim = Claim.objects.get(holder_id=row.pk, state=Claim.State.WAITING)
            assert (claim.reason_code, changes.exists()) == ("volume_in_use", False)
        else:
            assert row.phase == "ready"


def play(*, examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, print_blob=False
    )
    run_state_machine_as_test(AnyMounts, settings=options)


@pytest.mark.django_db
def test_any_mounts() -> None:
    play(examples=4, steps=25)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db
@pytest.mark.parametrize("examples", [15, rare(150)])
def test_any_mounts_for_long(examples: int) -> None:
    play(examples=examples, steps=60)
