"""A whole Berth with simulated pods, some tenants, and the means to break its cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.testing.kube import Kube
from tests.e2e.stack import Client, Stack, until
from tests.proof import invariants

Json = dict[str, Any]
# grace_seconds is 50 by default. With 2, a silent node is soon lost.
NODES = """
nodes:
- {name: gpu, count: 6, cpu: 64, memory: 512Gi,
   gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 8, compute: "8.0"}}
lifecycle: {grace_seconds: 2, detach_seconds: 3}
"""
# Faults hit only Berth's own calls, because the tests read the cluster meanwhile.
BERTHS = {"user_agent": "berth"}
ENOUGH_SECONDS = 120
TENANTS = """
from accounts.models import Membership, Role, Tenant, User
from quotas.models import Pool, Quota
pool = Pool.objects.get(slug="a100")
for slug in {slugs}:
    tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={{"name": slug}})
    for person in ("alice", "bob"):
        Membership.objects.get_or_create(
            tenant=tenant, user=User.objects.get(username=person), defaults={{"role": Role.MEMBER}}
        )
    Quota.objects.update_or_create(tenant=tenant, pool=pool, defaults={{"nominal_gpus": 24}})
"""
PATHS = {
    "Pod": "/api/v1/namespaces/{namespace}/pods/{name}",
    "Service": "/api/v1/namespaces/{namespace}/services/{name}",
    "Secret": "/api/v1/namespaces/{namespace}/secrets/{name}",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}",
}


@dataclass(frozen=True)
class World:
    stack: Stack
    kube: Kube
    people: dict[str, Client]

    # --- people

    def launch(self, person: str, tenant: str, name: str, **more: Any) -> Victim:
        body = {"tenant": tenant, "name": name, "image": "jupyter", "flavor": "a100-1", **more}
        status, made = self.people[person]("POST", "workspaces/", body)
        assert status == 201, made
        return Victim(self, person, made["id"], f"berth-{tenant}")

    def ready(self, person: str, tenant: str, name: str, **more: Any) -> Victim:
        victim = self.launch(person, tenant, name, **more)
        victim.becomes("ready")
        return victim

    # --- the cluster

    def on(self, **spec: Any) -> int:
        status, made = self.kube.call("POST", "/_faults", spec)
        assert status < 300, made
        return int(made["id"])

    def off(self, fault: int) -> None:
        self.kube.call("DELETE", f"/_faults/{fault}")

    @contextmanager
    def fault(self, **spec: Any) -> Iterator[None]:
        fault = self.on(**spec)
        try:
            yield
        finally:
            self.off(fault)


@dataclass(frozen=True)
class Victim:
    """A workspace under a fault, as its person and as the cluster's admin see it."""

    world: World
    person: str
    id: str
    namespace: str

    def ask(self, method: str, verb: str = "") -> tuple[int, Any]:
        return self.world.people[self.person](method, f"workspaces/{self.id}/{verb}")

    def wish(self, verb: str) -> None:
        status, answer = self.ask("POST", f"{verb}/")
        assert status == 202, answer

    def now(self) -> Json:
        return dict(self.ask("GET")[1])

    @property
    def run(self) -> str:
        return str(self.events()[-1]["run"])

    def events(self) -> list[Json]:
        return self.world.people[self.person].everything(f"workspaces/{self.id}/events/?limit=500")

    def told(self, code: str) -> int:
        return sum(event["code"] == code for event in self.events())

    def until(self, what: str, look: Callable[[], object], seconds: float = ENOUGH_SECONDS) -> None:
        """Wait until `look` holds; on failure, add the workspace's story to the error."""
        try:
            until(what, look, seconds)
        except AssertionError as error:
            now, told = self.now(), [(event["code"], event["message"]) for event in self.events()]
            raise AssertionError(f"{error}: {now['phase']}, {now['message']}\n{told}") from None

    def leave(self) -> None:
        """Delete the workspace with its files, without waiting for the end."""
        self.ask("DELETE", "?delete_disk=true")

    def becomes(self, phase: str, seconds: float = ENOUGH_SECONDS) -> Json:
        self.until(f"{self.person}'s is {phase}", lambda: self.now()["phase"] == phase, seconds)
        return self.now()

    def says(self, words: str, seconds: float = ENOUGH_SECONDS) -> None:
        """Wait until the workspace's message matches `words` (a regular expression)."""
        self.until(f"“{words}” is said", lambda: re.search(words, self.now()["message"]), seconds)

    def hears(self, code: str, seconds: float = ENOUGH_SECONDS) -> str:
        """Wait for an event with this code; return the sentence of the first."""

        self.until(f"“{code}” is told", lambda: self.told(code), seconds)
        return str(next(event["message"] for event in self.events() if event["code"] == code))

    def is_back(self, runs: int, seconds: float = ENOUGH_SECONDS) -> None:
        """Wait until the workspace is ready in run number `runs`."""
        self.until(
            f"{self.person}'s is ready in run {runs}",
            lambda: self.told("ready") == runs and self.now()["phase"] == "ready",
            seconds,
        )

    # --- in the cluster

    def path(self, kind: str) -> str:
        name = self.home if kind == "PersistentVolumeClaim" else f"ws-{self.id}"
        return PATHS[kind].format(namespace=self.namespace, name=name)

    @property
    def home(self) -> str:
        """Name of the PVC of its person's home."""
        query = "SELECT volume_id FROM storage_mount WHERE holder = %s AND path = '~'"
        return f"vol-{self.world.stack.rows(query, self.id)[0]['volume_id']}"

    def there(self, kind: str) -> Json | None:
        status, body = self.world.kube.call("GET", self.path(kind))
        return dict(body) if status == 200 else None

    def object(self, kind: str) -> Json:
        found = self.there(kind)
        assert found is not None, kind
        return found

    def uid(self, kind: str) -> str:
        return str(self.object(kind)["metadata"]["uid"])

    def patch(self, kind: str, body: Any, patch: str = "merge") -> None:
        status, answer = self.world.kube.call("PATCH", self.path(kind), body, patch)
        assert status == 200, answer

    def delete(self, kind: str, **options: Any) -> None:
        status, answer = self.world.kube.call("DELETE", self.path(kind), options or None)
        assert status < 300, answer


def check_and_leave(*victims: Victim) -> None:
    """Check the invariants of the workspaces, then delete them."""
    invariants.hold(victims[0].world.stack, 60, only=[victim.id for victim in victims])
    for victim in victims:
        victim.leave()


def clear_away(*victims: Victim) -> None:
    """Delete the workspaces with their files, and wait until they are gone."""
    for victim in victims:
        victim.leave()
    for victim in victims:
        victim.until("it is gone", lambda v=victim: v.now()["deleted_at"])  # type: ignore[misc]


def simulated(folder: Path, nodes: str, **settings: str) -> Stack:
    """Return a Berth with simulated pods on these nodes. It is not started yet."""
    file = folder / "nodes.yaml"
    file.write_text(nodes)
    return Stack(
        folder / "state", BERTH_DEVCLUSTER_PODS="played", BERTH_DEVCLUSTER_NODES=str(file), **settings
    )


@contextmanager
def world_in(folder: Path, *tenants: str, **settings: str) -> Iterator[World]:
    stack = simulated(folder, NODES, **settings)
    stack.start()
    try:
        stack.manage("shell", "-c", TENANTS.format(slugs=tenants))
        people = {
            person: stack.client(stack.token(person, "read", "workspaces")) for person in ("alice", "bob")
        }
        yield World(stack, Kube(stack.folder / "kubeconfig"), people)
    finally:
        stack.stop()
