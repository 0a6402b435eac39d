"""Node file: the nodes, their GPUs and how those are shared, and the images that can be pulled.

```yaml
nodes:
  - name: a100            # a100-1, a100-2 … where count is over 1
    count: 2
    cpu: 64               # cores; memory and disk as quantities
    memory: 512Gi
    disk: 1Ti
    pods: 110
    labels: {zone: a}
    taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
    unschedulable: false
    info: {kubeletVersion: v1.35.4}  # members of its nodeInfo that differ from the other nodes'
    gpus:
      product: NVIDIA-A100-SXM4-80GB
      count: 4            # physical cards
      memory_mib: 81920
      compute: "8.0"
      family: ampere
      sharing: none       # or time-slicing, mps, mig, hami, gpu-manager; see devcluster/gpus.py
      replicas: 4         # time-slicing, mps: how often each card is given out
      rename: false       # time-slicing, mps: as nvidia.com/gpu.shared
      profile: 1g.10gb    # mig: how the cards are cut
      instances: 7        # mig: per card
      strategy: mixed     # mig: or single
      split: 10           # hami: pods per card
      ecc: true           # by default as the product has it
      life: training      # GPU use of pods that name none themselves; see devcluster/gpuplay/lives.py
images:                   # absent: every reference can be pulled (simulated pods only)
  docker.io/local/jupyter:1:
    root: /path           # a folder or venv; its bin is first on PATH
    uid: 1000
    gid: 1000
    user: jovyan
    home: /home/jovyan
    pull_seconds: 2
    size_mib: 900
    command: [sleep, inf] # if the pod names none
    says: []              # or its program is simulated: it prints these lines, and exits
    exits: 0              # with this code
played:
  start_seconds: 0.2      # from bound to Running
  ready_seconds: 0.2      # from Running to Ready
  stop_seconds: 0.1
back_off:                 # before a container starts again, or an image is pulled again
  first_seconds: 10       # then doubled each time
  most_seconds: 300
  reset_seconds: 600      # a container that ran this long begins with no pause again
lifecycle:                # how long the control plane waits, by default as Kubernetes does
  grace_seconds: 50       # until the node of a silent kubelet is Unknown
  startup_seconds: 60     # the same for a Node whose kubelet never reported
  orphan_seconds: 40      # until pods of a deleted Node are removed
  detach_seconds: 360     # until volumes of a node that does not answer are detached
metrics:
  every_seconds: 10       # interval of measuring pods for metrics.k8s.io
faults: []                # active from the start; see docs/reference.md
```
"""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from devcluster import gpus
from devcluster.api import Api
from devcluster.resources import NODE, Obj

KUBELET = "kubelet"

DEFAULT_NODES = """
nodes:
  - {name: a100, count: 2, cpu: 64, memory: 512Gi,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 4, memory_mib: 81920, compute: "8.0", family: ampere}}
  - {name: t4, cpu: 32, memory: 256Gi,
     gpus: {product: Tesla-T4, count: 4, memory_mib: 15360, compute: "7.5", family: turing,
            sharing: time-slicing, replicas: 4}}
  - {name: a100-mig, cpu: 64, memory: 512Gi,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 2, memory_mib: 81920, compute: "8.0", family: ampere,
            sharing: mig, profile: 1g.10gb, instances: 7}}
  - {name: cpu, cpu: 32, memory: 128Gi}
"""


@dataclass(frozen=True)
class Image:
    root: Path | None = None
    uid: int | None = 1000
    gid: int = 1000
    user: str = "jovyan"
    home: str = "/home/jovyan"
    pull_seconds: float = 0.0
    size_mib: int = 512
    command: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    """Its program is simulated: it prints these lines and exits, played or not."""
    exits: int = 0


@dataclass(frozen=True)
class Played:
    start_seconds: float = 0.2
    ready_seconds: float = 0.2
    stop_seconds: float = 0.1


@dataclass(frozen=True)
class Pauses:
    """Pauses of the kubelets before they start a container again, or pull an image again."""

    first_seconds: float = 10.0
    most_seconds: float = 300.0
    reset_seconds: float = 600.0


@dataclass(frozen=True)
class Lifecycle:
    grace_seconds: float = 50.0
    startup_seconds: float = 60.0
    orphan_seconds: float = 40.0
    detach_seconds: float = 360.0


@dataclass(frozen=True)
class Metrics:
    every_seconds: float = 10.0


@dataclass(frozen=True)
class NodeFile:
    nodes: list[Obj]
    images: dict[str, Image] | None
    played: Played = field(default_factory=Played)
    back_off: Pauses = field(default_factory=Pauses)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    metrics: Metrics = field(default_factory=Metrics)
    cards: dict[str, dict[str, str]] = field(default_factory=dict)
    """What one GPU of a node announces, by the node's name."""
    gpus: dict[str, Obj] = field(default_factory=dict)
    """A node's entry of that name."""
    faults: list[Obj] = field(default_factory=list)


def read(path: Path | None) -> NodeFile:
    data: Obj = yaml.safe_load(path.read_text() if path else DEFAULT_NODES) or {}
    images = data.get("images")
    table = None if images is None else {ref: _image(entry or {}) for ref, entry in images.items()}
    entries = [(name, entry) for entry in data.get("nodes", []) for name in _names(entry)]
    carried = {name: entry["gpus"] for name, entry in entries if entry.get("gpus")}
    return NodeFile(
        nodes=[node_object(name, entry) for name, entry in entries],
        images=table,
        played=Played(**data.get("played", {})),
        back_off=Pauses(**data.get("back_off", {})),
        lifecycle=Lifecycle(**data.get("lifecycle", {})),
        metrics=Metrics(**data.get("metrics", {})),
        cards={name: gpus.resources(entry | {"count": 1}) for name, entry in carried.items()},
        gpus=carried,
        faults=data.get("faults") or [],
    )


def _image(entry: Obj) -> Image:
    root = Path(entry["root"]).resolve() if entry.get("root") else None
    lists = {name: tuple(entry.get(name, ())) for name in ("command", "says")}
    return Image(**{**entry, "root": root, **lists})


def _names(entry: Obj) -> list[str]:
    count = entry.get("count", 1)
    return [entry["name"]] if count == 1 else [f"{entry['name']}-{n}" for n in range(1, count + 1)]


def node_object(name: str, entry: Obj) -> Obj:
    """Return the Node that the file describes; its kubelet adds the observed status."""
    resources = {
        "cpu": str(entry.get("cpu", 16)),
        "memory": str(entry.get("memory", "64Gi")),
        "ephemeral-storage": str(entry.get("disk", "1Ti")),
        "pods": str(entry.get("pods", 110)),
    }
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    if announced := entry.get("gpus"):
        gpus.check(announced)
        labels |= gpus.labels(announced)
        resources |= gpus.resources(announced)
    labels |= {k: str(v) for k, v in (entry.get("labels") or {}).items()}
    spec: Obj = {"taints": entry["taints"]} if entry.get("taints") else {}
    if entry.get("unschedulable"):
        spec["unschedulable"] = True
    metadata = {"name": name, "labels": labels}
    if announced and (annotations := gpus.annotations(name, announced)):
        metadata["annotations"] = annotations
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"capacity": resources, "nodeInfo": entry.get("info") or {}},
    }


def is_ready(api: Api, name: str) -> bool:
    node = api.store.get(NODE, "", name)
    conditions = node["status"].get("conditions", []) if node else []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
