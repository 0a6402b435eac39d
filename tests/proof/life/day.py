"""Day of life: a Berth of its own, people and faults at once, then quiet, then the end of all that ran.

Everything is drawn from the seed except the timing of threads and processes. So the same seed gives the same requests
and faults, but not always in the same order.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from clusters.errors import ClusterError
from devcluster.testing.kube import Kube
from tests.e2e.stack import PASSWORD, Client, Stack, T, until
from tests.proof import invariants
from tests.proof.faulty_world import simulated
from tests.proof.life.faults import Faults
from tests.proof.life.observer import Observer
from tests.proof.life.office import Admin
from tests.proof.life.people import Person
from tests.proof.life.records import Records, Workspace
from tests.proof.life.rows import Rows
from tests.proof.life.sockets import Sockets

# So few that owners of GPUs wait for borrowers.
NODE_UNITS = {"gpu-1": 2, "gpu-2": 2, "shared": 4}
POOL_UNITS = {"a100": 4, "t4-shared": 4, "cpu": 0}
# Short times: nodes are lost and found, and pulls and pods retried, within a day of one minute. The cluster records
# the end of a pod in whole seconds. A stop takes longer than one, so that units returned too early are noticed.
NODES = """
nodes:
- {name: gpu, count: 2, cpu: 64, memory: 512Gi,
   gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 2, compute: "8.0"}}
- {name: shared, cpu: 32, memory: 256Gi,
   gpus: {product: Tesla-T4, memory_mib: 15360, count: 1, compute: "7.5", sharing: time-slicing, replicas: 4}}
- {name: plain, cpu: 64, memory: 256Gi}
played: {stop_seconds: 1.5}
images:
  berth.local/jupyter:1: {pull_seconds: 0.3}
back_off: {first_seconds: 1, most_seconds: 4}
lifecycle: {grace_seconds: 2, startup_seconds: 5, orphan_seconds: 2, detach_seconds: 4}
"""
# People in addition to those of a first start: name, tenant, role.
MORE_PEOPLE = (("erin", "demo", "member"), ("dave", "demo", "viewer"), ("frank", "second", "owner"))
LAUNCHING = (("alice", "demo", True), ("bob", "demo", False), ("erin", "demo", False), ("carol", "second", False),
             ("frank", "second", True))  # fmt: skip
MAKE_PEOPLE = """
import json
from accounts.credentials import tokens
from accounts.models import Membership, Tenant, User
from quotas.models import Budget, Quota, TenantLimit
for name, tenant, role in {people!r}:
    user = User.objects.create_user(name, name + "@berth.example", "not-used-{{}}".format(name))
    Membership.objects.create(user=user, tenant=Tenant.objects.get(slug=tenant), role=role)
for tenant in Tenant.objects.all():
    TenantLimit.objects.get_or_create(tenant=tenant)
    Budget.objects.create(tenant=tenant, gpu_hours=1000, grace_minutes=0)
Quota.objects.update(nominal_gpus=1, borrowing_limit_gpus=3)
everybody, scopes = User.objects.all(), ["read", "workspaces"]
given = {{user.username: scopes + ["admin"] * user.is_staff for user in everybody}}
print(json.dumps({{user.username: tokens.issue(user, "a day", given[user.username])[1] for user in everybody}}))
"""
# Prints waiting claims that could start now, by the rules of the queue and by brute force.
COULD_START = """
import json
from quotas import pool_state
from quotas.models import Claim, Pool
from quotas.scheduling import decide
from tests.quotas.scheduling.oracle import could_have_started
found = []
for pool in Pool.objects.all():
    state = pool_state.read(pool, Claim.objects.filter(pool=pool, state="waiting"))
    decisions = decide(state)
    found += [f"{pool.slug}: {one.claim} is let in now" for one in decisions.admitted]
    found += [f"{pool.slug}: {claim} could have started" for claim in could_have_started(state, decisions)]
print(json.dumps(found))
"""
GRACE_SECONDS = 6
PERSON_PAUSES_SECONDS, FAULT_PAUSES_SECONDS, ADMIN_PAUSES_SECONDS = 0.5, 3.0, 4.0
CALM_SECONDS = 300  # limit of each wait; on a quick machine it takes seconds
MOVING = ("starting", "stopping", "deleting")


@dataclass
class World:
    """A running Berth and its observers."""

    stack: Stack
    rows: Rows
    kube: Kube
    observer: Observer
    tokens: dict[str, str]
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def client(self, name: str) -> Client:
        return self.stack.client(self.tokens[name])


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    folder.chmod(0o711)
    stack = simulated(
        folder,
        NODES,
        BERTH_RECLAIM_GRACE_MINUTES=str(GRACE_SECONDS / 60),
        BERTH_READS_PER_MINUTE="0",
        BERTH_WRITES_PER_MINUTE="0",
        BERTH_LAUNCHES_PER_MINUTE="0",
    )
    stack.start()
    kubeconfig = stack.folder / "kubeconfig"
    observer = Observer(kubeconfig)
    try:
        made = stack.manage("shell", "-c", MAKE_PEOPLE.format(people=MORE_PEOPLE))
        observer.start()
        yield World(stack, Rows(stack), Kube(kubeconfig), observer, json.loads(made.strip().splitlines()[-1]))
    finally:
        observer.stop()
        stack.stop()


@dataclass
class Day:
    world: World
    seed: int
    seconds: float
    people: list[Person] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    secrets_deleted: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sockets = Sockets(self.world.stack.address)
        for name, tenant, manages in LAUNCHING:
            self.people.append(self._person(name, tenant, manages))
        self.people.append(self._person("dave", "demo", False, may_launch=False))
        # Two at once, so that a fault also meets the effects of another.
        self.faults = [
            Faults(
                self.world.stack,
                self.world.kube,
                tuple(NODE_UNITS),
                Random(f"{self.seed} {name}"),
                self.told,
                self.secrets_deleted,
            )
            for name in ("a fault", "another fault")
        ]
        self.admin = Admin(
            self.world.stack.address,
            PASSWORD,
            self.world.rows.quotas(),
            Random(f"{self.seed} admin"),
            self.told,
        )

    def _person(self, name: str, tenant: str, manages: bool, may_launch: bool = True) -> Person:
        dice = Random(f"{self.seed} {name}")
        api = self.world.client(name)
        return Person(name, tenant, api, dice, self.sockets, may_launch=may_launch, manages_others=manages)

    def live(self) -> None:
        """Run people, faults and the admin at once for the day's seconds."""
        self.sockets.start()
        ends_at = time.monotonic() + self.seconds
        with ThreadPoolExecutor(max_workers=32) as everybody:
            lives = [everybody.submit(person.live, ends_at, PERSON_PAUSES_SECONDS) for person in self.people]
            lives += [everybody.submit(fault.happen, ends_at, FAULT_PAUSES_SECONDS) for fault in self.faults]
            lives.append(everybody.submit(self.admin.live, ends_at, ADMIN_PAUSES_SECONDS))
        for life in lives:
            life.result()

    # --- quiet

    def calm_down(self) -> None:
        """End the faults; wait until all workspaces are at rest or report a problem, and no waiting one could start."""
        patiently(self.world.stack.end_faults)
        until("Berth answers", self.world.stack.is_ready, CALM_SECONDS, 0.5)
        patiently(self.admin.open_all)
        until_none("all is at rest", self.moving)
        until_none("nobody waits who could start", self.could_start)
        until_none("all is at rest", self.moving)

    def moving(self) -> list[str]:
        return [
            described(row)
            for row in self.world.rows.workspaces().values()
            if row.deleted_at is None
            and (row.dirty_since or row.ending or (row.phase in MOVING and not row.troubles))
        ] + [
            f"{claim.holder}: asked back by {claim.reclaim_at}"
            for claim in self.world.rows.claims()
            if claim.state == "admitted" and claim.reclaim_at is not None
        ]

    def could_start(self) -> list[str]:
        found: list[str] = json.loads(self.world.stack.manage("shell", "-c", COULD_START).splitlines()[-1])
        return found

    def end_everything(self) -> None:
        """Stop or delete, in turn, the workspaces that are left, and wait until nothing runs."""
        admin = self.world.client("admin")
        for number, row in enumerate(self.world.rows.workspaces().values()):
            if row.desired != "deleted":  # a deletion that a fault delayed needs no second request
                path = f"workspaces/{row.id}/"
                status, answer = admin("DELETE", path) if number % 2 else admin("POST", f"{path}stop/")
                is_gone = status == 404 and self.world.rows.workspaces()[row.id].desired == "deleted"
                assert status in (200, 202) or is_gone, answer
        until_none("all is stopped", self.running)
        until_none("sockets have heard all", self.behind)

    def running(self) -> list[str]:
        return [
            described(row)
            for row in self.world.rows.workspaces().values()
            if row.deleted_at is None
            and (row.dirty_since or row.ending or row.phase not in ("stopped", "failed"))
        ]

    def lasting_faults(self) -> list[str]:
        """Return violations of invariants that last: a late relist can enqueue workspaces at rest for a moment."""
        deadline = time.monotonic() + CALM_SECONDS
        while wrong := patiently(lambda: invariants.check(self.world.stack)):
            if time.monotonic() > deadline:
                return wrong
            time.sleep(0.5)
        return []

    def behind(self) -> list[str]:
        """Describe sockets that stayed and have not received the last event yet."""
        last = {row.id: row.last_event for row in self.world.rows.workspaces().values()}
        return [
            f"{heard.who} at {heard.workspace}: {len(heard.events)} of {last[heard.workspace]}"
            for heard in self.sockets.heard
            if heard.stayed and heard.refused is None and len(heard.events) < last[heard.workspace]
        ]

    def records(self) -> Records:
        rows = self.world.rows
        return Records(
            asked=[request for person in self.people for request in person.asked],
            workspaces=rows.workspaces(),
            events=rows.events(),
            claims=rows.claims(),
            audit=rows.audit(),
            pods=list(self.world.observer.pods.values()),
            lived=self.world.observer.lived,
            heard=self.sockets.heard,
            shares=self.admin.shares,
            bookings=rows.bookings(),
            pool_units=POOL_UNITS,
            node_units=NODE_UNITS,
            left=self.world.observer.left(),
            ssh_keys=rows.ssh_keys(),
            let_in=self.world.observer.let_in(),
            secrets_deleted=self.secrets_deleted,
            database=rows.log(),
        )

    def story(self) -> str:
        """Log of requests and faults, to be read when a check fails."""
        lines = [f"seed {self.seed}", *self.told]
        asked = sorted((r for p in self.people for r in p.asked), key=lambda request: request.sent)
        lines += [
            f"{r.sent:%H:%M:%S.%f} {r.who} {r.verb} {r.workspace} {r.body} -> {r.status}" for r in asked
        ]
        return "\n".join(lines)


def described(row: Workspace) -> str:
    return (
        f"{row.id}: {row.phase} {row.message_code}, wanted {row.desired}, ending {row.ending or 'not'}, "
        f"marked since {row.dirty_since}"
    )


def patiently(ask: Callable[[], T]) -> T:
    """Repeat a call that got no answer: on a busy machine a connection can wait longer than its timeout."""
    deadline = time.monotonic() + CALM_SECONDS
    while True:
        try:
            return ask()
        except (OSError, http.client.HTTPException, ClusterError):
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def until_none(what: str, look: Callable[[], list[str]]) -> None:
    """Wait until `look` returns nothing; raise AssertionError with the rest after CALM_SECONDS."""
    deadline = time.monotonic() + CALM_SECONDS
    while left := look():
        if time.monotonic() > deadline:
            raise AssertionError("\n".join([f"{what}: not within {CALM_SECONDS} s, but for", *left]))
        time.sleep(0.5)
