"""What the agent sends, as JSON: one batch per request, with reports from the oldest to the newest.

A field that is absent was not answered: the GPU does not offer it, or failed to say (then `failed` names the field and
the error). Nothing is ever guessed or set to zero. Units stand in the names. `agent` and `sequence` together name a
report for ever: one that comes twice, because an answer was lost, is the same. A receiver ignores fields and codes
that it does not know; a change that it could misread gets another VERSION.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

VERSION = 1

# Whether a GPU can be asked at all. `failing`: whatever was asked, it answered errors; `gone`: it was there earlier.
State = Literal["ok", "lost", "reset_required", "failing", "gone"]


class Trouble(TypedDict):
    """Something that is wrong with the node; the codes stand in causes.py."""

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
    """`pid` counts as the node does. `pod_uid` and `container_id` are absent for what runs in no pod."""

    pid: int
    kind: Literal["compute", "graphics"]
    memory_mib: NotRequired[int]
    sm_percent: NotRequired[int]
    pod_uid: NotRequired[str]
    container_id: NotRequired[str]


class MigSample(TypedDict):
    """NVML knows no utilisation of a MIG device; DCGM does, where it is asked in an agent's place."""

    uuid: str
    utilization_percent: NotRequired[int]
    memory_used_mib: NotRequired[int]
    processes: NotRequired[list[Process]]
    failed: NotRequired[dict[str, str]]


class XidCount(TypedDict):
    xid: int
    count: int


class GpuSample(TypedDict):
    """What is sent and received, replays, and the ECC and row figures count up; all else is of this moment.

    `recovery_action` is what the driver says is to be done before the GPU works well again: `none`, `gpu_reset`,
    `node_reboot`, `drain_p2p`, `drain_and_reset` or another of NVML's names. `last_xid` and `xid_counts` are DCGM's,
    where it is asked in an agent's place: the last error that was, 0 if there was none, and how many there were lately.
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
    """What the kubelet gave to a container. Without `uuid` nobody can tell here which GPU that is (pods.py)."""

    namespace: str
    pod: str
    container: str
    resource: str
    device: str
    uuid: NotRequired[str]


class Xid(TypedDict):
    """One error as the driver told it. Without `uuid` the driver did not say of which GPU."""

    xid: int
    at: float
    uuid: NotRequired[str]
    gpu_instance: NotRequired[int]
    compute_instance: NotRequired[int]


class Look(TypedDict):
    """`gpus` is empty where NVML does not answer; `holdings` is absent where the kubelet does not."""

    taken_at: float
    troubles: list[Trouble]
    gpus: list[GpuSample]
    holdings: NotRequired[list[Holding]]
    xids: list[Xid]


class Report(Look):
    sequence: int


class Head(TypedDict):
    """`inventory` is the newest one known, whatever the age of the reports; absent until there was one.

    `simulated` says that nothing of it was measured: a trial's cluster plays its GPUs.
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
