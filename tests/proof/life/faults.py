"""Faults of a day, drawn at random: processes, calls, watches, nodes, pods, images, objects, the database."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from clusters.errors import ClusterError
from devcluster.testing.kube import Kube
from tests.e2e.stack import Stack
from tests.proof.life.observer import OURS, PATHS

BERTH = {"user_agent": "berth*"}
IMAGE = "berth.local/jupyter:1"
CALLS: tuple[dict[str, Any], ...] = (
    {"status": 500, "share": 0.1},
    {"status": 429, "retry_after": 1, "share": 0.3},
    {"status": 503},
    {"latency_ms": 700},
    {"reset": "before", "share": 0.3},
    {"reset": "after", "share": 0.3},
    {"reset": "middle", "share": 0.3},
    {"hold": "before", "times": 5},
    {"hold": "after", "times": 5},
)
WATCHES: tuple[dict[str, Any], ...] = (
    {"drop_watches": True},
    {"reset_watches": True},
    {"silent_watches": True},
)
NODES: tuple[dict[str, Any], ...] = (
    {"state": "unreachable"},
    {"state": "off"},
    {"state": "deleted"},
    {"state": "not-ready"},
    {"pressure": "disk"},
    {"dead_gpus": 1},
)
BY_HAND = (
    "/api/v1/namespaces/{namespace}/services/{name}",
    "/api/v1/namespaces/{namespace}/secrets/{name}",
)


@dataclass
class Faults:
    stack: Stack
    kube: Kube
    nodes: tuple[str, ...]
    dice: Random
    told: list[str] = field(default_factory=list)
    # Time of the last deletion of each workspace's Secret.
    secrets_deleted: dict[str, datetime] = field(default_factory=dict)

    def happen(self, until: float, pause_seconds: float) -> None:
        kinds: dict[Callable[[], None], int] = {
            self.kill: 5, self.kill_all: 1, self.fail_calls: 6, self.break_watches: 3, self.lose_node: 3,
            self.end_pod: 5, self.spoil_image: 1, self.meddle: 4, self.restart_database: 1,
        }  # fmt: skip
        while time.monotonic() < until:
            [kind] = self.dice.choices(list(kinds), list(kinds.values()))
            with contextlib.suppress(OSError, http.client.HTTPException, ClusterError, AssertionError):
                kind()
            time.sleep(self.dice.expovariate(1 / pause_seconds))

    # --- processes

    def kill(self) -> None:
        part = self.dice.choice(["web", "worker", "watcher"])
        self.told.append(f"kill {part}")
        self.stack.kill(part)

    def kill_all(self) -> None:
        self.told.append("kill web, worker, watcher")
        for part in ("web", "worker", "watcher"):
            self.stack.kill(part)

    def restart_database(self) -> None:
        how = self.dice.choice([signal.SIGINT, signal.SIGKILL])
        self.told.append(f"{how.name} to the database")
        os.kill(self.stack.pid("postgres"), how)

    # --- the cluster

    def strike(self, lasting: float, **spec: Any) -> None:
        """Switch a fault on for `lasting` seconds."""
        self.told.append(f"{spec} for {lasting:.1f} s")
        number = self.stack.fault(**spec)
        time.sleep(lasting)
        self.stack.end_faults(number)

    def fail_calls(self) -> None:
        self.strike(self.dice.uniform(1, 5), match=BERTH, **self.dice.choice(CALLS))

    def break_watches(self) -> None:
        self.strike(self.dice.uniform(0.5, 4), match=BERTH, **self.dice.choice(WATCHES))

    def lose_node(self) -> None:
        self.strike(self.dice.uniform(1, 7), node=self.dice.choice(self.nodes), **self.dice.choice(NODES))

    def spoil_image(self) -> None:
        error = self.dice.choice(["not-found", "unauthorized", "rate-limit", "timeout"])
        self.strike(self.dice.uniform(1, 4), image=IMAGE, error=error, seconds=0.2)

    # --- by hand

    def one(self, path: str) -> dict[str, Any] | None:
        found = self.kube.get(path, labelSelector=OURS)["items"]
        return self.dice.choice(found)["metadata"] if found else None

    def end_pod(self) -> None:
        if (pod := self.one(PATHS["Pod"])) is None:
            return
        path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}"
        how = self.dice.choice(["delete", "force", "evict"])
        self.told.append(f"{how} pod {pod['name']}")
        if how == "evict":
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["name"]}}
            self.kube.call("POST", f"{path}/eviction", eviction)
        else:
            self.kube.call("DELETE", path, {"gracePeriodSeconds": 0} if how == "force" else None)

    def meddle(self) -> None:
        """Delete what lets people in to a workspace."""
        if (found := self.one(PATHS["Pod"])) is None:
            return
        path = self.dice.choice(BY_HAND).format(**found)
        self.told.append(f"delete {path}")
        self._note_secret(path, found["name"])  # the call may take effect even if no answer comes
        self.kube.call("DELETE", path)
        self._note_secret(path, found["name"])

    def _note_secret(self, path: str, name: str) -> None:
        if "secrets" in path:
            self.secrets_deleted[name.removeprefix("ws-")] = datetime.now(UTC)
