"""Claims of a pod on its node: bound, attached, mounted. Failures are reported in the kubelet's words."""

import asyncio
import time
from pathlib import Path

from devcluster.api import Api
from devcluster.controllers.storage.attachments import attachment_name, is_attached
from devcluster.faults.volumefaults import HeldBack, VolumeFaults
from devcluster.kubelet.storage.disks import Disks
from devcluster.kubelet.storage.volumes import NotReady
from devcluster.resources import POD, PV, PVC, VOLUME_ATTACHMENT, Obj
from devcluster.storage import claim_name, claims_of, driver_of, ended, handle_of, size_of

PATIENCE_SECONDS = 123.0
"""After so long, the kubelet says that it waits for a volume."""
LOOK_SECONDS = 0.1


class Mounting:
    """Mounting of claims. `disks` is None with simulated pods, which mount nothing."""

    def __init__(self, api: Api, disks: Disks | None, faults: VolumeFaults):
        self._api, self._disks, self._faults = api, disks, faults
        self._filling: set[asyncio.Task[None]] = set()
        faults.changed = self._refill

    async def mount(self, pod: Obj) -> dict[str, Path]:
        """Return the folders of the pod's claims, by claim; raise NotReady if one cannot be used."""
        found = {name: await self._mount(pod, name) for name in claims_of(pod)}
        return {name: path for name, path in found.items() if path}

    async def _mount(self, pod: Obj, name: str) -> Path | None:
        meta, node = pod["metadata"], pod["spec"]["nodeName"]
        claim = self._api.store.get(PVC, meta["namespace"], name)
        volume = self._api.store.get(PV, "", claim["spec"].get("volumeName", "")) if claim else None
        if claim is None or volume is None or claim["status"].get("phase") != "Bound":
            raise NotReady(f'Unable to attach or mount volumes: claim "{name}" is not bound')
        await self._until_attached(volume, node, name)
        failed = f'MountVolume.MountDevice failed for volume "{volume["metadata"]["name"]}" : '
        try:
            await self._until_let(claim, node)
            if writes(pod, name) and (fault := self._faults.matches("held", claim, node)):
                fault.hits += 1
                await self._format(volume)
            return await self._mount_disk(volume, claim, meta["uid"])
        except (HeldBack, OSError) as error:
            raise NotReady(failed + str(error)) from error

    async def _until_attached(self, volume: Obj, node: str, name: str) -> None:
        began = time.monotonic()
        while not self._attached(volume, node):
            if time.monotonic() > began + PATIENCE_SECONDS:
                told = (
                    f"unmounted volumes=[{name}], unattached volumes=[{name}], failed to process volumes=[]"
                )
                raise NotReady(f"Unable to attach or mount volumes: {told}: context deadline exceeded")
            await asyncio.sleep(LOOK_SECONDS)

    async def _until_let(self, claim: Obj, node: str) -> None:
        """Wait while a fault delays the mount; raise HeldBack with its words if the fault is an error."""
        while True:
            try:
                return self._faults.bear("mount", claim, node)
            except HeldBack as held:
                if held.error:
                    raise
                await asyncio.sleep(LOOK_SECONDS)

    def _attached(self, volume: Obj, node: str) -> bool:
        driver = driver_of(volume)
        if driver is None or not driver.attached:
            return True
        attachment = self._api.store.get(VOLUME_ATTACHMENT, "", attachment_name(volume, driver, node))
        return attachment is not None and is_attached(attachment)

    async def _mount_disk(self, volume: Obj, claim: Obj, user: str) -> Path | None:
        if self._disks is None:
            return None
        path = await self._disks.mount(handle_of(volume), size_of(volume), user)
        if self._faults.matches("full", claim):
            await self._disks.fill(handle_of(volume), True)
        return path

    async def _format(self, volume: Obj) -> None:
        """Do what a kubelet does with a volume whose file system it cannot read."""
        if self._disks:
            await self._disks.format(handle_of(volume))

    def uses(self, node: str) -> list[Obj]:
        """Return the use of each claim that a running pod of the node mounts, as the agent reports it."""
        if self._disks is None:
            return []
        found: dict[tuple[str, str], Obj] = {}
        for pod in self._api.store.each(POD):
            if pod["spec"].get("nodeName") != node or ended(pod):
                continue
            namespace = pod["metadata"]["namespace"]
            for name in claims_of(pod):
                claim = self._api.store.get(PVC, namespace, name)
                volume = claim and self._api.store.get(PV, "", claim["spec"].get("volumeName", ""))
                if volume and (use := self._disks.use(handle_of(volume))):
                    told = {"used_mib": use[0] // 2**20, "capacity_mib": use[1] // 2**20}
                    found[namespace, name] = {"namespace": namespace, "claim": name, **told}
        return list(found.values())

    def forget(self, pod_uid: str) -> None:
        if self._disks:
            self._disks.release(pod_uid)

    def _refill(self) -> None:
        task = asyncio.ensure_future(self._fill())
        self._filling.add(task)
        task.add_done_callback(self._filling.discard)

    async def _fill(self) -> None:
        """Fill every mounted volume, or free it again, according to the active faults."""
        for claim in self._api.store.each(PVC):
            volume = self._api.store.get(PV, "", claim["spec"].get("volumeName", ""))
            if volume and self._disks and handle_of(volume) in self._disks.mounted:
                await self._disks.fill(handle_of(volume), self._faults.matches("full", claim) is not None)


def writes(pod: Obj, claim: str) -> bool:
    """Return True if a container of the pod can write to the claim's volume."""
    sources = pod["spec"].get("volumes") or []
    names = {
        one["name"]
        for one in sources
        if claim_name(pod, one) == claim and not (one.get("persistentVolumeClaim") or {}).get("readOnly")
    }
    mounts = [mount for one in pod["spec"]["containers"] for mount in one.get("volumeMounts") or []]
    return any(mount["name"] in names and not mount.get("readOnly") for mount in mounts)
