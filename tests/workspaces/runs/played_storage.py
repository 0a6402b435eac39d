"""Simulated cluster whose driver copies volumes slowly, and whose nodes can be lost."""

from __future__ import annotations

from collections import Counter

from tests.shared.played_api import Object, PlayedApi

DRIVER, CLASS = "csi.played", "net-shared"
NODES = ("gpu-1", "gpu-2")
STEPS_OF_COPY = 8


class PlayedStorage(PlayedApi):
    """Pods of a lost node stay as they were last seen, also when they are deleted, until the node is back."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: set[str] = set()
        self._steps = Counter[str]()
        for kind, more in (
            ("StorageClass", {"provisioner": DRIVER}),
            ("VolumeSnapshotClass", {"driver": DRIVER}),
        ):
            self.put({"kind": kind, "metadata": {"name": CLASS, "uid": kind}, **more})

    def step(self) -> bool:
        return bool(super().step() + self._copy())

    def _bind(self) -> bool:
        has_bound = super()._bind()
        for volume in self.of("PersistentVolume"):
            volume["spec"]["csi"] = {"driver": DRIVER}
        return has_bound

    def _run(self, pod: Object) -> bool:
        node = pod["spec"].get("nodeName")
        if node is None and not pod["metadata"].get("deletionTimestamp"):
            up = [name for name in NODES if name not in self.lost]
            if not up:
                return False
            pod["spec"]["nodeName"] = up[0]
            self.put(pod)
            return True
        return node not in self.lost and super()._run(pod)

    def _copy(self) -> bool:
        """Go on with each VolumeSnapshot that is not ready. Return True if there is one."""
        unready = [
            one for one in self.of("VolumeSnapshot") if not (one.get("status") or {}).get("readyToUse")
        ]
        for snapshot in unready:
            uid = snapshot["metadata"]["uid"]
            self._steps[uid] += 1
            if self._steps[uid] >= STEPS_OF_COPY:
                name = f"content-{uid}"
                self.put(
                    {
                        "kind": "VolumeSnapshotContent",
                        "metadata": {"name": name, "uid": name},
                        "spec": {"deletionPolicy": "Delete", "driver": DRIVER},
                        "status": {"snapshotHandle": name},
                    }
                )
                snapshot["status"] = {"readyToUse": True, "boundVolumeSnapshotContentName": name}
        return bool(unready)
