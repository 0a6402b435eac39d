"""Volumes of workspaces changed, handed over and published in any order at any moment, with starts, stops, restarts,
evictions, lost nodes, and killed looks at workspaces and volumes.

After every step, judged by the pods that may run: a pod that writes to a volume is alone on it, and what a pod mounts
is what its claim holds, no more and no less. No pod writes to a volume while a version of it is being taken, or to a
version. When all is quiet, what was wanted is mounted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from unittest import TestCase
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.access import Actor
from accounts.errors import Refusal
from clusters.models import Installation
from quotas import admission
from quotas.models import Claim
from storage import copies
from storage.cluster.look import look as look_at_volume
from storage.models import LATEST, Access, Kind, Mount, Phase, Snapshot, Volume
from storage.mounts import mounting
from storage.mounts.leasing import Leases
from storage.mounts.mounting import MountWish
from tests.cast import make_cast
from tests.sampling import rare
from tests.shared.faults import is_alive, killed_after
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import Object
from tests.workspaces.runs.faults import ROUNDS_OF_QUIET, ROUNDS_UNTIL_QUIET
from tests.workspaces.runs.played_storage import CLASS, NODES, PlayedStorage
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.models import Desired, Workspace
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

WHICH = st.integers(0, 2)
# By volume: not mounted, to read, to write, its latest version.
HOW = st.tuples(*[st.sampled_from(["", "r", "w", "v"])] * 2)


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
        self.api = PlayedStorage()
        self.mirror = PlayedMirror(self.api)
        self.cast.cluster.shared_classes = [CLASS]
        self.cast.cluster.save()
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
                storage_class=CLASS,
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

    def keep(self) -> None:
        """Look at every volume, as its keeper does."""
        rows = Volume.objects.select_related("tenant", "cluster", "owner", "source__volume__tenant")
        for row in rows.filter(deleted_at=None):
            with TestCase().assertNoLogs("storage.cluster.look", level="ERROR"):
                look_at_volume(row, self.mirror, Installation.current_id())

    # --- people

    @rule(which=WHICH, how=HOW)
    def remount(self, which: int, how: tuple[str, ...]) -> None:
        wishes = [
            MountWish(
                volume=volume.pk,
                path=f"/{volume.name}",
                read_only=one != "w",
                version=LATEST if one == "v" else "",
            )
            for volume, one in zip(self.volumes, how, strict=True)
            if one and (one != "v" or volume.snapshots.filter(phase=Phase.READY).exists())
        ]
        change(self.owner(which), self.row(which), Change(volumes=wishes))
        kept = mounting.wished(mounting.all_of([self.ids[which]])[self.ids[which]])
        assert sorted(kept, key=str) == sorted(((wish.path[1:], wish) for wish in wishes), key=str)

    @rule(which=WHICH, verb=st.sampled_from([lifecycle.start, lifecycle.stop, lifecycle.restart]))
    def ask(self, which: int, verb: Callable[..., bool]) -> None:
        with suppress(Refusal):
            verb(self.owner(which), self.row(which))

    @rule(which=st.integers(0, 1))
    def publish(self, which: int) -> None:
        with suppress(Refusal):
            copies.publish(self.cast.alice, Volume.objects.get(pk=self.volumes[which].pk))

    @rule(volume=st.integers(0, 1), which=WHICH, is_first=st.booleans(), rounds=st.integers(2, 9))
    def write_to_what_is_being_published(self, volume: int, which: int, is_first: bool, rounds: int) -> None:
        """Publish, and write to the same volume, in either order."""
        if is_first:
            self.publish(volume)
            self.keep()
        self.remount(which, tuple("w" if number == volume else "" for number in range(2)))
        for verb in (lifecycle.restart, lifecycle.start):
            self.ask(which, verb)
        for number in range(rounds):
            if not is_first and number == rounds // 2:
                self.publish(volume)
                self.keep()
            self.pass_over_the_queue()
            self.work(which)
            self.api.step()

    # --- Berth and the cluster

    @rule()
    def look_at_volumes(self) -> None:
        self.keep()

    @rule(statements=st.integers(0, 40))
    def look_at_volumes_and_die(self, statements: int) -> None:
        with killed_after(statements):
            self.keep()

    @rule(which=st.integers(0, 1))
    def node_is_lost(self, which: int) -> None:
        self.api.lost.add(NODES[which])

    @rule()
    def nodes_are_back(self) -> None:
        self.api.lost.clear()

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
            self.keep()
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
        for volume in Volume.objects.filter(kind=Kind.DATASET):
            readers = users[volume.object_name]
            assert all(readers) or (len(readers) == 1 and not volume.is_version)

    @invariant()
    def nobody_writes_to_what_is_being_published(self) -> None:
        written = {name for pod in self.alive for name, read_only in mounted(pod).items() if not read_only}
        for body in self.api.of("VolumeSnapshot"):
            if not (body.get("status") or {}).get("readyToUse"):
                assert body["spec"]["source"]["persistentVolumeClaimName"] not in written

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
        self.nodes_are_back()
        quiet = 0
        for _ in range(ROUNDS_UNTIL_QUIET):
            if quiet > ROUNDS_OF_QUIET:
                break
            before = list(Workspace.objects.values_list("changed_at", flat=True).order_by("pk"))
            self.all_goes_well(1)
            self.a_writer_is_alone()
            self.a_claim_holds_what_its_pod_mounts()
            self.nobody_writes_to_what_is_being_published()
            after = list(Workspace.objects.values_list("changed_at", flat=True).order_by("pk"))
            is_quiet = before == after and not Snapshot.objects.filter(phase=Phase.PENDING).exists()
            quiet = quiet + 1 if is_quiet else 0
        for which in range(len(self.ids)):
            self.is_as_wanted(self.row(which))
        assert not Snapshot.objects.filter(phase=Phase.PENDING).exists()

    def is_as_wanted(self, row: Workspace) -> None:
        changes = Mount.objects.filter(holder=row.pk).exclude(turn="")
        if row.desired == Desired.STOPPED:
            assert (row.phase, changes.exists()) == ("stopped", False)
        elif row.phase == "waiting":
            claim = Claim.objects.get(holder_id=row.pk, state=Claim.State.WAITING)
            assert (claim.reason_code, changes.exists()) == ("volume_in_use", False)
        else:
            assert row.phase == "ready"


def play(*, examples: int, steps: int, start: int | None = None) -> None:
    """Play random orders. The same `start` plays the same ones; None: others each time."""
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
    )
    machine = AnyMounts if start is None else seed(start)(type("AnyMounts", (AnyMounts,), {}))
    run_state_machine_as_test(machine, settings=options)


@pytest.mark.django_db
@pytest.mark.slow
def test_any_mounts() -> None:
    play(examples=2, steps=25)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db
@pytest.mark.parametrize("start", [rare(number) for number in range(10)])
def test_any_mounts_for_long(start: int) -> None:
    play(examples=15, steps=60, start=start)
