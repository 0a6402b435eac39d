"""A Berth whose cluster breaks on demand: its people, the messages and pages they get, and its faults.

Alice works in Demo: her laboratory runs on a GPU from the first trouble to the last. Carol works in Second, on a node
of her own: she must not hear of any trouble. The admin reads pages.
"""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from devcluster.testing.kube import Kube
from portal.up.plan import REPOSITORY
from tests.e2e.stack import PASSWORD, Client, Stack, until
from tests.proof.life.office import TOKEN, Office, hidden

# The default is 50. The tests measure the time from the loss to the page.
NODES_LOST_AFTER_SECONDS = 2
FAR = "berth.local/far:1"  # on no node yet: it has to be pulled
NODES = f"""
nodes:
- {{name: gpu, count: 3, cpu: 64, memory: 512Gi,
   gpus: {{product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}}}}
- {{name: shared, cpu: 16, memory: 64Gi,
   gpus: {{product: Tesla-T4, memory_mib: 15360, count: 1, compute: "7.5", sharing: hami, split: 10}}}}
images: {{"{FAR}": {{root: {REPOSITORY}/.dev/image}}}}
lifecycle: {{grace_seconds: {NODES_LOST_AFTER_SECONDS}}}
back_off: {{first_seconds: 1, most_seconds: 2}}
"""
SMALL = {"pool": "a100", "gpus": 1, "cpu": 1, "memory_mib": 1024}
TROUBLES = "/admin/monitoring/trouble/"
Body = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """A moment on two clocks: `passed` for measured times, `at` for comparison with Berth's timestamps."""

    passed: float = field(default_factory=time.monotonic)
    at: datetime = field(default_factory=lambda: datetime.now().astimezone())


@dataclass
class Messages:
    """Messages of a socket, with their times of arrival."""

    connection: ClientConnection
    frames: list[tuple[float, Body]] = field(default_factory=list)

    def listen(self) -> None:
        try:
            for frame in self.connection:
                self.frames.append((time.monotonic(), json.loads(frame)))
        except ConnectionClosed:
            pass

    def first(self, code: str, since: Moment) -> tuple[float, str] | None:
        """Return the seconds until the code came, as an event or as the reason of a wait, and its sentence."""
        for came, frame in list(self.frames):
            event = frame.get("event", {})
            if event.get("code") == code and datetime.fromisoformat(event["at"]) >= since.at:
                return came - since.passed, event["message"]
            reason = ((frame.get("workspace") or {}).get("queue") or {}).get("reason") or {}
            if reason.get("code") == code:
                return came - since.passed, reason["message"]
        return None


class Reader(Office):
    """A signed-in browser that reads pages."""

    def text(self, path: str) -> str:
        """Return the page's text in one line."""
        page = re.sub(r"(?s)<(script|style|template)\b.*?</\1>", " ", self._get(path))
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())

    def press(self, path: str, **fields: str) -> None:
        """Send a form of one button."""
        self._post(path, list(fields.items()))

    def act(self, path: str, action: str, row: str) -> None:
        """Run an admin action on a row of a list, and confirm its preview."""
        page = self._post(path, [("action", action), ("_selected_action", row)])
        shown = [pair for pair in hidden(page) if pair[0] != TOKEN]
        self._post(path, [*shown, ("confirmed", "yes")])


@dataclass
class Scene:
    stack: Stack
    api: Client  # alice's
    carol: Client
    kube: Kube
    alice: Reader
    admin: Reader
    carols: Body  # her workspace
    _lab: Body | None = None

    @classmethod
    def of(cls, stack: Stack) -> Self:
        kube = Kube(stack.folder / "kubeconfig")
        carol = stack.client(stack.token("carol", "read", "workspaces"))
        carols = wait(carol, launch(carol, "second", "elsewhere"), "ready")
        # Nothing else may run on her node: its faults would hit her too.
        kube.call("PATCH", f"/api/v1/nodes/{carols['node']}", {"spec": {"unschedulable": True}}, "merge")
        return cls(
            stack,
            stack.client(stack.token("alice", "read", "workspaces")),
            carol,
            kube,
            Reader(stack.address, "alice", PASSWORD),
            Reader(stack.address, "admin", PASSWORD),
            carols,
        )

    def launch(self, name: str, **body: Any) -> Body:
        return launch(self.api, "demo", name, **body)

    def now(self, workspace: Body) -> Body:
        return now(self.api, workspace)

    def wait(self, workspace: Body, phase: str) -> Body:
        return wait(self.api, workspace, phase)

    def start(self, workspace: Body) -> None:
        self.api("POST", f"workspaces/{workspace['id']}/start/")

    def tidy(self) -> None:
        """Delete alice's workspaces with their files, except the laboratory, and wait until they are gone."""
        kept = self._lab["id"] if self._lab else None
        others = [one["id"] for one in self._alices() if one["id"] != kept]
        for one in others:
            self.api("DELETE", f"workspaces/{one}/?delete_disk=true")
        until("they are gone", lambda: not {one["id"] for one in self._alices()}.intersection(others), 180)

    def _alices(self) -> list[Body]:
        return list(self.api("GET", "workspaces/")[1]["results"])

    def lab(self) -> Body:
        """Return alice's laboratory, ready; start it again if a trouble ended it."""
        if self._lab is None:
            self._lab = self.launch("laboratory")
        elif self.now(self._lab)["phase"] in ("failed", "stopped"):
            self.start(self._lab)
        return self.wait(self._lab, "ready")

    def admin_reads(self, words: str) -> bool:
        """Return True if the words are in the list of current troubles."""
        return words in self.admin.text(TROUBLES)

    def trust(self, uuid: str) -> None:
        """Confirm as the admin that the GPU works."""
        query = "SELECT id FROM monitoring_trouble WHERE subject = %s AND ended_at IS NULL"
        for row in self.stack.rows(query, uuid):
            self.admin.act(TROUBLES, "trust", str(row["id"]))

    def gpu(self, workspace: Body) -> str:
        """Return the UUID of the workspace's GPU, once the node's agent reported it."""
        query = "SELECT uuid FROM clusters_gpu WHERE node = %s AND held_by::text LIKE %s"
        pod = f"%{workspace['id']}%"
        [row] = until("its GPU is known", lambda: self.stack.rows(query, workspace["node"], pod))
        return str(row["uuid"])

    @contextmanager
    def fault(self, **spec: Any) -> Iterator[Moment]:
        """Switch a fault on for the context; yield the moment of its beginning."""
        began = Moment()
        status, made = self.kube.call("POST", "/_faults", spec)
        assert status < 300, made
        try:
            yield began
        finally:
            self.kube.call("DELETE", f"/_faults/{made['id']}")

    @contextmanager
    def heard(self, workspace: Body) -> Iterator[Messages]:
        """Listen to one workspace as alice."""
        with listening(self.stack, self.api, f"workspaces/{workspace['id']}/?after=0&") as told:
            yield told


def launch(api: Client, tenant: str, name: str, **body: Any) -> Body:
    status, made = api(
        "POST", "workspaces/", {"tenant": tenant, "name": name, "image": "jupyter", **SMALL, **body}
    )
    assert status == 201, made
    return dict(made)


def now(api: Client, workspace: Body) -> Body:
    return dict(api("GET", f"workspaces/{workspace['id']}/")[1])


def wait(api: Client, workspace: Body, phase: str) -> Body:
    until(f"{workspace['name']} is {phase}", lambda: now(api, workspace)["phase"] == phase, 180)
    return now(api, workspace)


@contextmanager
def listening(stack: Stack, api: Client, path: str) -> Iterator[Messages]:
    ticket = api("POST", "ws-tickets/")[1]["ticket"]
    address = f"{stack.address.replace('http', 'ws')}/ws/{path}token={ticket}"
    with connect(address, open_timeout=60) as connection:
        told = Messages(connection)
        listener = threading.Thread(target=told.listen, daemon=True)
        listener.start()
        yield told
        connection.close()
        listener.join(30)


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    folder.chmod(0o711)
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    stack = Stack(folder / "state", BERTH_DEVCLUSTER_NODES=str(nodes))
    stack.start()
    try:
        make = f"from workloads.models import Image; Image.objects.create(slug='far', reference='{FAR}')"
        stack.manage("shell", "-c", make)
        yield Scene.of(stack)
    finally:
        stack.stop()
