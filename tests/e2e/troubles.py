"""Troubles of a cluster, switched on by its faults, and when a browser's socket hears of each in words."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.e2e.stack import Client, Stack, until
from tests.kube import Kube
from tests.workspaces.notebook import Kernel

# Not after fifty, as by default: what is measured is the way from there to the page.
NODES_LOST_AFTER_SECONDS = 2
NODES = f"""
nodes:
- {{name: gpu, count: 2, cpu: 64, memory: 512Gi,
   gpus: {{product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}}}}
lifecycle: {{grace_seconds: {NODES_LOST_AFTER_SECONDS}}}
"""
ABSENT = "berth.local/absent:1"
NOT_FOUND = (
    f'failed to pull and unpack image "{ABSENT}": failed to resolve reference "{ABSENT}": {ABSENT}: not found'
)
SMALL = {"pool": "a100", "gpus": 1, "cpu": 1, "memory_mib": 1024}


@dataclass
class Told:
    """What the socket of one workspace has said, with the moment of each."""

    connection: ClientConnection
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def listen(self) -> None:
        try:
            for frame in self.connection:
                if (message := json.loads(frame))["type"] == "event":
                    self.events.append((time.monotonic(), message["event"]))
        except ConnectionClosed:
            pass

    def first(self, code: str, since: float) -> tuple[float, str] | None:
        """How many seconds after `since` that code came, and its sentence."""
        found = [(at, event) for at, event in self.events if event["code"] == code and at > since]
        return (found[0][0] - since, found[0][1]["message"]) if found else None


@dataclass(frozen=True)
class Scene:
    """A Berth with real pods, somebody who launches, and the cluster's switches."""

    stack: Stack
    api: Client
    kube: Kube

    def launch(self, name: str, **body: Any) -> dict[str, Any]:
        status, made = self.api(
            "POST", "workspaces/", {"tenant": "demo", "name": name, "image": "jupyter", **SMALL, **body}
        )
        assert status == 201, made
        return dict(made)

    def now(self, workspace: dict[str, Any]) -> dict[str, Any]:
        return dict(self.api("GET", f"workspaces/{workspace['id']}/")[1])

    def wait(self, workspace: dict[str, Any], phase: str) -> dict[str, Any]:
        until(f"{workspace['name']} is {phase}", lambda: self.now(workspace)["phase"] == phase, 60)
        return self.now(workspace)

    def end(self, workspace: dict[str, Any]) -> None:
        self.api("DELETE", f"workspaces/{workspace['id']}/?delete_disk=true")
        until("it is gone", lambda: self.api("GET", "workspaces/")[1]["results"] == [], 60)

    @contextmanager
    def fault(self, **spec: Any) -> Iterator[float]:
        """On while inside; since when."""
        began = time.monotonic()
        status, made = self.kube.call("POST", "/_faults", spec)
        assert status < 300, made
        try:
            yield began
        finally:
            self.kube.call("DELETE", f"/_faults/{made['id']}")

    @contextmanager
    def heard(self, workspace: dict[str, Any]) -> Iterator[Told]:
        ticket = self.api("POST", "ws-tickets/")[1]["ticket"]
        address = self.stack.address.replace("http", "ws")
        with connect(f"{address}/ws/workspaces/{workspace['id']}/?after=0&token={ticket}") as connection:
            told = Told(connection)
            listener = threading.Thread(target=told.listen, daemon=True)
            listener.start()
            yield told
            connection.close()
            listener.join(5)


@dataclass(frozen=True)
class Jupyter:
    """Where a workspace's Jupyter is asked."""

    address: str
    token: str

    @classmethod
    def of(cls, workspace: dict[str, Any]) -> Jupyter:
        link = urlsplit(workspace["endpoints"]["jupyter"])
        return cls(str(link.hostname), parse_qs(link.query)["token"][0])


@dataclass(frozen=True)
class Trouble:
    """`happens` makes it happen to a workspace, and is over when what it switched on is off again. It yields the
    workspace and since when."""

    code: str
    words: str
    happens: Callable[[Scene], Any]


@contextmanager
def out_of_memory(scene: Scene) -> Iterator[tuple[dict[str, Any], float]]:
    workspace = scene.wait(scene.launch("greedy"), "ready")
    with Kernel(Jupyter.of(workspace)) as kernel:
        began = time.monotonic()
        kernel.start("held = b'x' * 2 * 2**30")
        yield workspace, began


@contextmanager
def image_that_is_not_there(scene: Scene) -> Iterator[tuple[dict[str, Any], float]]:
    with scene.fault(image=ABSENT, error=NOT_FOUND) as began:
        yield scene.launch("imageless", image="absent"), began


@contextmanager
def no_node_for_its_disk(scene: Scene) -> Iterator[tuple[dict[str, Any], float]]:
    """Its disk is on a node that takes nothing more; the other node, which has room, cannot have that disk."""
    workspace = scene.wait(scene.launch("tied", disk_mib=64), "ready")
    node = f"/api/v1/nodes/{workspace['node']}"
    scene.api("POST", f"workspaces/{workspace['id']}/stop/")
    scene.wait(workspace, "stopped")
    began = time.monotonic()
    scene.kube.call("PATCH", node, {"spec": {"unschedulable": True}}, "merge")
    scene.api("POST", f"workspaces/{workspace['id']}/start/")
    yield workspace, began
    scene.kube.call("PATCH", node, {"spec": {"unschedulable": None}}, "merge")


@contextmanager
def full_disk(scene: Scene) -> Iterator[tuple[dict[str, Any], float]]:
    workspace = scene.wait(scene.launch("crowded"), "ready")
    with scene.fault(node=workspace["node"], pressure="disk") as began:
        yield workspace, began


@contextmanager
def lost_node(scene: Scene) -> Iterator[tuple[dict[str, Any], float]]:
    workspace = scene.wait(scene.launch("cut-off"), "ready")
    with scene.fault(node=workspace["node"], state="unreachable") as began:
        yield workspace, began


TROUBLES = {
    "out of memory": Trouble("out_of_memory", "It used more memory than it may", out_of_memory),
    "no such image": Trouble("image_not_found", "does not exist in its registry", image_that_is_not_there),
    "no node": Trouble("volume_on_other_node", "Its disk lives on another node", no_node_for_its_disk),
    "full disk": Trouble("evicted_disk", "ran out of temporary disk space", full_disk),
    "lost node": Trouble("node_lost", "Its node does not answer any more", lost_node),
}


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    folder.chmod(0o711)
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    stack = Stack(folder / "state", BERTH_DEVCLUSTER_NODES=str(nodes))
    stack.start()
    try:
        make = (
            f"from workspaces.models import Image; Image.objects.create(slug='absent', reference='{ABSENT}')"
        )
        stack.manage("shell", "-c", make)
        api = stack.client(stack.token("alice", "read", "workspaces"))
        yield Scene(stack, api, Kube(stack.folder / "kubeconfig"))
    finally:
        stack.stop()
