"""JSON that the agent sends: one batch per request, with reports from the oldest to the newest.

An absent field was not answered: the GPU does not offer the value, or failed to return it (then `failed` names the
field and the error). No value is guessed or set to zero. Names contain units. `agent` and `sequence` together identify
a report for ever: a report that comes twice, because an answer was lost, is the same report. A receiver ignores unknown
fields and codes; a change that a receiver could misread gets another VERSION.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

VERSION = 1

# State of a GPU. `failing`: every question got an error; `gone`: the GPU was there earlier.
State = Literal["ok", "lost", "reset_required", "failing", "gone"]


class Trouble(TypedDict):
    """Problem of the node or of the agent; causes.py lists the codes."""

    code: str
    detail: str


class MigFacts(TypedDict):
    uuid: str
    name: NotRequired[str]
    memory_mib: NotRequired[int]
    gpu_instance: NotRequired[int]
    compute_instance: NotRequired[int]


class GpuFacts(TypedDict):
    index: int
    uuid: str
    name: NotRequired[str]
    memory_mib: NotRequired[int]
    ecc: NotRequired[bool]
    ecc_after_reset: NotRequired[bool]
    compute_capability: NotRequired[str]
    mig: NotRequired[bool]
    mig_devices: list[MigFacts]
    pci_bus: NotRequired[str]
    power_limit_watts: NotRequired[float]


class Inventory(TypedDict):
    driver_version: NotRequired[str]
    cuda_version: NotRequired[str]
    gpus: list[GpuFacts]


class Process(TypedDict):
    """Process on a GPU. `pid` is the node's. `pod_uid` and `container_id` are absent outside of pods."""

    pid: int
    kind: Literal["compute", "graphics"]
    memory_mib: NotRequired[int]
    sm_percent: NotRequired[int]
    pod_uid: NotRequired[str]
    container_id: NotRequired[str]


class MigSample(TypedDict):
    """Sample of a MIG device. NVML has no utilization for MIG devices; DCGM has, where it replaces the agent."""

    uuid: str
    utilization_percent: NotRequired[int]
    memory_used_mib: NotRequired[int]
    processes: NotRequired[list[Process]]
    failed: NotRequired[dict[str, str]]


class XidCount(TypedDict):
    xid: int
    count: int


class GpuSample(TypedDict):
    """Sample of a GPU. Bytes sent and received, replays, ECC and row figures are counters; the rest is of this moment.

    `recovery_action` is what the driver requires before the GPU works well again: `none`, `gpu_reset`, `node_reboot`,
    `drain_p2p`, `drain_and_reset` or another of NVML's names. `last_xid` and `xid_counts` come from DCGM only, where it
    replaces the agent: the last error, 0 if there was none, and the recent errors by number.
    """

    uuid: str
    state: State
    utilization_percent: NotRequired[int]
    memory_busy_percent: NotRequired[int]
    memory_used_mib: NotRequired[int]
    power_watts: NotRequired[float]
    temperature_celsius: NotRequired[int]
    memory_temperature_celsius: NotRequired[int]
    sm_clock_mhz: NotRequired[int]
    memory_clock_mhz: NotRequired[int]
    pcie_generation: NotRequired[int]
    pcie_width: NotRequired[int]
    pcie_replays: NotRequired[int]
    pcie_sent_bytes: NotRequired[int]
    pcie_received_bytes: NotRequired[int]
    nvlink_sent_kib: NotRequired[int]
    nvlink_received_kib: NotRequired[int]
    slowed_by: NotRequired[list[str]]
    ecc_uncorrected_since_boot: NotRequired[int]
    ecc_uncorrected_ever: NotRequired[int]
    ecc_corrected_since_boot: NotRequired[int]
    ecc_corrected_ever: NotRequired[int]
    rows_remapped_corrected: NotRequired[int]
    rows_remapped_uncorrected: NotRequired[int]
    row_remap_pending: NotRequired[bool]
    row_remap_failed: NotRequired[bool]
    recovery_action: NotRequired[str]
    last_xid: NotRequired[int]
    xid_counts: NotRequired[list[XidCount]]
    processes: NotRequired[list[Process]]
    mig: NotRequired[list[MigSample]]
    failed: NotRequired[dict[str, str]]


class Holding(TypedDict):
    """Device that the kubelet gave to a container. `uuid` is absent where the agent cannot know the GPU (pods.py)."""

    namespace: str
    pod: str
    container: str
    resource: str
    device: str
    uuid: NotRequired[str]


class VolumeUse(TypedDict):
    """Use of the file system behind a PVC that a pod of this node mounts."""

    namespace: str
    claim: str
    used_mib: int
    capacity_mib: int


class OomKills(TypedDict):
    """Processes of a pod, or of one of its containers, that the kernel ended for memory: as many since it began."""

    pod_uid: str
    kills: int
    container_id: NotRequired[str]


class Xid(TypedDict):
    """Error that the driver reported. `uuid` is absent where the driver did not name the GPU."""

    xid: int
    at: float
    uuid: NotRequired[str]
    gpu_instance: NotRequired[int]
    compute_instance: NotRequired[int]


class Look(TypedDict):
    """State at one moment. `gpus` is empty if NVML does not answer; `holdings` is absent if the kubelet does not.

    `volumes` is there about once a minute: the kubelet measures no more often. `oom_kills` has counts that changed, and
    is absent if the agent does not see the node's cgroups.
    """

    taken_at: float
    troubles: list[Trouble]
    gpus: list[GpuSample]
    holdings: NotRequired[list[Holding]]
    xids: list[Xid]
    volumes: NotRequired[list[VolumeUse]]
    oom_kills: NotRequired[list[OomKills]]


class Report(Look):
    sequence: int


class Head(TypedDict):
    """Head of a batch. `inventory` is the newest one, whatever the age of the reports; absent before the first.

    `simulated`: nothing was measured; a trial's cluster simulates its GPUs.
    """

    version: int
    node: str
    agent: str
    sent_at: float
    dropped: int
    simulated: NotRequired[bool]
    inventory: NotRequired[Inventory]


class Batch(Head):
    reports: list[Report]
