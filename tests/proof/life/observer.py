"""Cluster's own record of Berth's pods and PVCs, watched independently of Berth.

Faults of a day hit only Berth's calls and watches, so this record should have no gaps; `broken` lists any.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.error
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from devcluster.testing.kube import Kube
from tests.proof.life.records import Json, Lived, PodLife

INSTANCE, WORKSPACE, RUN = "berth.dev/instance", "berth.dev/workspace", "berth.dev/run"
PATHS = {
    "Pod": "/api/v1/pods",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}
LEFT = {
    **PATHS,
    "Service": "/api/v1/services",
    "Secret": "/api/v1/secrets",
}
OURS = "app.kubernetes.io/managed-by=berth"
GPU_PREFIXES = ("nvidia.com/",)


class Forgotten(Exception):
    """The cluster no longer has the history after the last event."""


class Observer:
    def __init__(self, kubeconfig: Path) -> None:
        self.kube = Kube(kubeconfig)
        self.pods: dict[str, PodLife] = {}
        self.broken: list[str] = []
        self._lived: dict[str, Lived] = {}
        self._looks = count(1)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in PATHS]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(10)

    @property
    def lived(self) -> Sequence[Lived]:
        return list(self._lived.values())

    def left(self) -> list[tuple[str, str, str]]:
        """Objects of workspaces that exist now: (kind, workspace, name)."""
        return [
            (kind, labels[WORKSPACE], body["metadata"]["name"])
            for kind, path in LEFT.items()
            for body in self.kube.get(path, labelSelector=OURS)["items"]
            if WORKSPACE in (labels := body["metadata"].get("labels") or {})
        ]

    def let_in(self) -> dict[str, set[str]]:
        """SSH keys in each workspace's Secret."""
        return {
            labels[WORKSPACE]: set(base64.b64decode(keys).decode().splitlines())
            for body in self.kube.get(LEFT["Secret"], labelSelector=OURS)["items"]
            if WORKSPACE in (labels := body["metadata"].get("labels") or {})
            and (keys := (body.get("data") or {}).get("authorized_keys")) is not None
        }

    # --- one kind, followed

    def _follow(self, kind: str) -> None:
        """Follow a kind. A cut watch resumes at its last event and misses nothing; a list after lost history may."""
        version = ""
        while not self._stopped.is_set():
            try:
                version = version or self._list(kind)
                for body in self._watch(kind, version):
                    version = body["metadata"]["resourceVersion"]
            except Forgotten as error:
                version = ""
                self.broken.append(f"{kind}: {error}")
            except (OSError, http.client.HTTPException, ValueError):
                self._stopped.wait(0.5)

    def _list(self, kind: str) -> str:
        listed = self.kube.get(PATHS[kind], labelSelector=OURS)
        if "items" not in listed:
            raise ValueError(listed)
        there = {body["metadata"]["uid"] for body in listed["items"]}
        for body in listed["items"]:
            self._see(kind, "ADDED", body)
        for uid in self._alive(kind) - there:
            self._gone(kind, uid)
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, kind: str, version: str) -> Iterator[Json]:
        query = {"labelSelector": OURS, "watch": "1", "resourceVersion": version, "timeoutSeconds": "2"}
        with self._open(kind, query) as stream:
            for line in stream:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Forgotten(event["object"])
                self._see(kind, event["type"], event["object"])
                yield event["object"]

    def _open(self, kind: str, query: Json) -> Any:
        try:
            return self.kube.open("GET", PATHS[kind], **query)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise Forgotten(error.read()) from error
            raise

    def _alive(self, kind: str) -> set[str]:
        if kind == "Pod":
            return {uid for uid, pod in self.pods.items() if pod.seen_last is None}
        return {one.uid for one in self.lived if one.kind == kind and one.ended is None}

    def _gone(self, kind: str, uid: str) -> None:
        if kind == "Pod":
            self.pods[uid].seen_last = self.pods[uid].seen_last or datetime.now(UTC)
        else:
            one = self._lived[uid]
            self._lived[uid] = Lived(**{**vars(one), "ended": one.ended or next(self._looks)})

    def _see(self, kind: str, change: str, body: Json) -> None:
        metadata = body["metadata"]
        labels = metadata.get("labels") or {}
        if WORKSPACE not in labels:
            return
        uid = metadata["uid"]
        if kind == "Pod":
            see_pod(self.pods, body)
        elif uid not in self._lived:
            part = metadata["name"] if kind == "PersistentVolumeClaim" else ""
            self._lived[uid] = Lived(
                kind=kind,
                workspace=labels[WORKSPACE],
                part=part,
                uid=uid,
                began=next(self._looks),
                ended=None,
            )
        if change == "DELETED":
            self._gone(kind, uid)


def see_pod(pods: dict[str, PodLife], body: Json) -> None:
    metadata, status = body["metadata"], body.get("status", {})
    labels = metadata["labels"]
    pod = pods.setdefault(
        metadata["uid"],
        PodLife(
            uid=metadata["uid"],
            workspace=labels[WORKSPACE],
            run=labels.get(RUN, ""),
            units=units_of(body),
            created=moment(metadata["creationTimestamp"]),
            seen_first=datetime.now(UTC),
        ),
    )
    if node := body["spec"].get("nodeName"):
        pod.node, pod.seen_placed = node, pod.seen_placed or datetime.now(UTC)
    for container in status.get("containerStatuses") or ():
        if ended := (container.get("state", {}).get("terminated") or {}).get("finishedAt"):
            pod.finished = moment(ended)
    if status.get("phase") in ("Succeeded", "Failed"):
        pod.seen_last = pod.seen_last or datetime.now(UTC)


def units_of(body: Json) -> int:
    return sum(
        int(amount)
        for container in body["spec"]["containers"]
        for name, amount in (container.get("resources", {}).get("limits") or {}).items()
        if name.startswith(GPU_PREFIXES)
    )


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
