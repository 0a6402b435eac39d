"""Resources that all pod workers of this machine share: addresses, images, disks, logs and the runtime."""

import asyncio
import os
import shutil
from pathlib import Path

from devcluster.access.tokens import Tokens
from devcluster.api import Api
from devcluster.faults.podfaults import PodFaults
from devcluster.fleet import Fleet
from devcluster.kubelet.containers.config import Lookup
from devcluster.kubelet.containers.images import Images
from devcluster.kubelet.containers.logs import PodLogs
from devcluster.kubelet.network.names import Names
from devcluster.kubelet.processes.users import host_uid
from devcluster.kubelet.runtime import Runtime
from devcluster.kubelet.storage.ephemeral import Scratch
from devcluster.kubelet.storage.mounting import Mounting
from devcluster.kubelet.storage.podtokens import PodTokens
from devcluster.kubelet.storage.volumes import PodVolumes
from devcluster.network import PodNetwork
from devcluster.nodes import Pauses
from devcluster.resources import POD, Obj


class Host:
    def __init__(
        self,
        *,
        api: Api,
        state: Path,
        fleet: Fleet,
        runtime: Runtime,
        images: Images,
        mounting: Mounting,
        tokens: Tokens,
        network: PodNetwork,
        names: Names,
        ready_seconds: float,
        pauses: Pauses,
        pod_faults: PodFaults,
    ):
        self._api, self._state, self._fleet = api, state, fleet
        self.runtime, self.images = runtime, images
        self.ready_seconds, self.pauses, self.pod_faults = ready_seconds, pauses, pod_faults
        self.mounting, self._tokens = mounting, tokens
        self.scratch = Scratch(state)
        self.logs = PodLogs(state / "logs", self._latest)
        self.network, self.names = network, names
        self._taken: set[str] = set()
        self._addresses_of: dict[str, str] = {}

    def _latest(self, pod: Obj) -> Obj | None:
        meta = pod["metadata"]
        found = self._api.store.get(POD, meta["namespace"], meta["name"])
        return found if found and found["metadata"]["uid"] == meta["uid"] else None

    def take_address(self, pod: Obj) -> str:
        address = self.network.addresses.take(self._taken)
        self._taken.add(address)
        self._addresses_of[pod["metadata"]["uid"]] = address
        return address

    def volumes(self, pod: Obj, lookup: Lookup) -> PodVolumes:
        uid = pod["metadata"]["uid"]
        owner = host_uid(pod) if os.geteuid() == 0 else None
        folder = self._state / "run" / uid
        return PodVolumes(pod, folder, self.scratch.folder(uid), lookup, owner, PodTokens(self._tokens, pod))

    def reachable(self, pod: Obj) -> bool:
        return self._fleet.speaks(pod["spec"]["nodeName"])

    async def until_reachable(self, pod: Obj) -> None:
        while not self.reachable(pod):  # noqa: ASYNC110  (nodes go silent in tests only)
            await asyncio.sleep(0.2)

    def give_back(self, pod_uid: str) -> None:
        """Release the pod's disks and scratch space, once none of its containers runs."""
        self.names.leave(pod_uid)
        self.mounting.forget(pod_uid)
        self.scratch.remove(pod_uid)

    def clear(self, pod: Obj) -> None:
        """Remove the files that were written for a pod, once the pod is gone."""
        meta = pod["metadata"]
        uid = meta["uid"]
        found = self._api.store.get(POD, meta["namespace"], meta["name"])
        if found is not None and found["metadata"]["uid"] == uid:
            return
        self.give_back(uid)
        self.network.leave(uid)
        self._taken.discard(self._addresses_of.pop(uid, ""))
        for part in ("run", "names", "logs"):
            shutil.rmtree(self._state / part / uid, ignore_errors=True)
