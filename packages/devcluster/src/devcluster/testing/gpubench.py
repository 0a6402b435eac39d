"""Fleet of a node file with its GPUs and their faults, without a cluster around it."""

from pathlib import Path
from typing import Any

from devcluster import nodes
from devcluster.api import Api
from devcluster.faults.registry import Faults
from devcluster.fleet import Fleet
from devcluster.gpuplay.agent import Looker
from devcluster.gpuplay.ailments import GpuFaults
from devcluster.gpuplay.devices import Devices
from devcluster.resources import POD, Obj
from devcluster.store import Store

A100 = "{product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 2"
NODES = f"""
nodes:
  - {{name: whole, gpus: {A100}}}, labels: {{nvidia.com/cuda.driver-version.full: 535.1.2}}}}
  - {{name: sliced, gpus: {A100}, sharing: time-slicing, replicas: 2}}}}
  - {{name: cut, gpus: {A100}, sharing: mig, profile: 3g.40gb, instances: 2}}}}
  - {{name: hami, gpus: {A100}, sharing: hami, split: 4}}}}
  - {{name: tencent, gpus: {A100}, sharing: gpu-manager}}}}
"""
NOW = 1_800_000_000.0


class Bench:
    def __init__(self, folder: Path):
        (folder / "nodes.yaml").write_text(NODES)
        self.store = Store(folder / "objects.sqlite")
        self.fleet = Fleet(nodes.read(folder / "nodes.yaml"))
        self.devices, self.faults = Devices(self.fleet), Faults()
        self.faults.offer(self.fleet.switch, GpuFaults(self.fleet).switch)
        self.lookers = {
            node.name: Looker(Api(self.store), node, self.devices, lambda uid: 0.0, "steady 50")
            for node in self.fleet
            if node.gpus
        }

    def run(self, name: str, node: str, amount: int = 1, **meta: Any) -> Obj:
        """Return a running pod that its node has admitted."""
        resource = {"cut": "nvidia.com/mig-3g.40gb"}.get(node, "nvidia.com/gpu")
        main = {"name": "main", "resources": {"limits": {resource: str(amount)}}}
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        status = {"name": "main", "state": state, "containerID": f"devcluster://{'c' * 64}"}
        pod = {
            "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **meta},
            "spec": {"nodeName": node, "containers": [main]},
            "status": {"phase": "Running", "containerStatuses": [status]},
        }
        self.store.put(POD, pod)
        self.devices.give(pod)
        return pod

    def look(self, node: str, at: float = NOW) -> Obj:
        return self.lookers[node].look(at)

    def gpu(self, node: str, index: int, at: float = NOW) -> Obj:
        found: Obj = self.look(node, at)["gpus"][index]
        return found

    def switch(self, **spec: Any) -> int:
        return int(self.faults.add(spec)["id"])
