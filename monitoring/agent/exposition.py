"""The last report in Prometheus' text format. A value without an answer has no line.

Written by hand (`_lines`): prometheus_client would replace these few lines only, and would be a second package in every
node's agent. The tests read the text with prometheus_client's parser.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .inventory import MIB
from .schema import GpuSample, Inventory, Look


class Metric(NamedTuple):
    """Metric: a counter if its name ends in `_total`, else a gauge. `factor` leads from the field's unit to its own."""

    name: str
    help: str
    field: str = ""
    factor: float = 1


Values = Iterable[tuple[Mapping[str, str], float]]  # labels and value
Family = tuple[Metric, Values]

_OF_A_GPU = (
    Metric("berth_gpu_utilization_ratio", "Time in which a kernel ran.", "utilization_percent", 0.01),
    Metric(
        "berth_gpu_memory_busy_ratio",
        "Time in which memory was read or written.",
        "memory_busy_percent",
        0.01,
    ),
    Metric("berth_gpu_memory_used_bytes", "Memory in use.", "memory_used_mib", MIB),
    Metric("berth_gpu_power_watts", "Power drawn.", "power_watts"),
    Metric("berth_gpu_temperature_celsius", "Temperature of the GPU.", "temperature_celsius"),
    Metric(
        "berth_gpu_memory_temperature_celsius", "Temperature of its memory.", "memory_temperature_celsius"
    ),
    Metric("berth_gpu_sm_clock_hertz", "Clock of its processors.", "sm_clock_mhz", 1e6),
    Metric("berth_gpu_memory_clock_hertz", "Clock of its memory.", "memory_clock_mhz", 1e6),
    Metric("berth_gpu_pcie_generation", "Generation of its PCIe link now.", "pcie_generation"),
    Metric("berth_gpu_pcie_lanes", "Lanes of its PCIe link now.", "pcie_width"),
    Metric("berth_gpu_pcie_replays_total", "Packets sent again over PCIe.", "pcie_replays"),
    Metric("berth_gpu_pcie_sent_bytes_total", "Sent over PCIe.", "pcie_sent_bytes"),
    Metric("berth_gpu_pcie_received_bytes_total", "Received over PCIe.", "pcie_received_bytes"),
    Metric("berth_gpu_nvlink_sent_bytes_total", "Sent over NVLink.", "nvlink_sent_kib", 1024),
    Metric("berth_gpu_nvlink_received_bytes_total", "Received over NVLink.", "nvlink_received_kib", 1024),
    Metric(
        "berth_gpu_ecc_uncorrected_total", "Uncorrected ECC errors since boot.", "ecc_uncorrected_since_boot"
    ),
    Metric("berth_gpu_ecc_uncorrected_ever_total", "Uncorrected ECC errors.", "ecc_uncorrected_ever"),
    Metric("berth_gpu_ecc_corrected_total", "Corrected ECC errors since boot.", "ecc_corrected_since_boot"),
    Metric("berth_gpu_ecc_corrected_ever_total", "Corrected ECC errors.", "ecc_corrected_ever"),
    Metric(
        "berth_gpu_rows_remapped_uncorrected",
        "Rows remapped for uncorrected errors.",
        "rows_remapped_uncorrected",
    ),
    Metric(
        "berth_gpu_rows_remapped_corrected", "Rows remapped for corrected errors.", "rows_remapped_corrected"
    ),
    Metric("berth_gpu_row_remap_pending", "A row waits for a reset to be remapped.", "row_remap_pending"),
    Metric("berth_gpu_row_remap_failed", "A row could not be remapped.", "row_remap_failed"),
)
_UP = Metric("berth_gpu_up", "Whether the GPU answers.")
_INFO = Metric("berth_gpu_info", "What the GPU is.")
_MEMORY = Metric("berth_gpu_memory_bytes", "Memory of the GPU.", "memory_mib", MIB)
_SLOWED = Metric("berth_gpu_slowed", "Why its clocks are lower than they could be.")
_TO_DO = Metric("berth_gpu_recovery_action", "What has to be done before the GPU works well again.")
_PROCESSES = Metric("berth_gpu_processes", "Processes on the GPU, by pod.")
_MIG_MEMORY = Metric(
    "berth_gpu_mig_memory_used_bytes", "Memory in use of a MIG device.", "memory_used_mib", MIB
)
_HELD = Metric("berth_gpu_held", "Which container the kubelet gave the device to.")
_XIDS = Metric("berth_gpu_xids_total", "Errors of the driver (Xid) since this agent began.")
_TROUBLE = Metric("berth_agent_trouble", "What is wrong with the node or the agent.")
_LOOKED = Metric("berth_agent_last_look_timestamp_seconds", "When the agent looked last.")


def text(
    report: Look | None,
    inventory: Inventory | None,
    xids: Mapping[tuple[str, int], int],
    own: Iterable[tuple[Metric, float]],
) -> str:
    families = [
        *(_of_inventory(inventory) if inventory else ()),
        *(_of_report(report) if report else ()),
        (_XIDS, [({"uuid": uuid, "xid": str(xid)}, count) for (uuid, xid), count in xids.items()]),
        *((metric, [({}, value)]) for metric, value in own),
    ]
    return "".join(f"{line}\n" for metric, values in families for line in _lines(metric, values))


def _of_inventory(inventory: Inventory) -> Iterator[Family]:
    versions = {
        "driver_version": inventory.get("driver_version", ""),
        "cuda_version": inventory.get("cuda_version", ""),
    }
    known = ("uuid", "index", "name", "compute_capability", "pci_bus")
    yield (
        _INFO,
        [({name: str(gpu.get(name, "")) for name in known} | versions, 1) for gpu in inventory["gpus"]],
    )
    yield _MEMORY, _values(_MEMORY, inventory["gpus"])


def _of_report(report: Look) -> Iterator[Family]:
    gpus = report["gpus"]
    yield _UP, [({"uuid": gpu["uuid"]}, gpu["state"] == "ok") for gpu in gpus]
    for metric in _OF_A_GPU:
        yield metric, _values(metric, gpus)
    yield _SLOWED, [({"uuid": gpu["uuid"], "by": by}, 1) for gpu in gpus for by in gpu.get("slowed_by", [])]
    to_do = [(gpu["uuid"], gpu["recovery_action"]) for gpu in gpus if "recovery_action" in gpu]
    yield _TO_DO, [({"uuid": uuid, "action": action}, 1) for uuid, action in to_do]
    yield _PROCESSES, _processes(gpus)
    yield _MIG_MEMORY, _values(_MIG_MEMORY, [device for gpu in gpus for device in gpu.get("mig", [])])
    names = ("uuid", "device", "namespace", "pod", "container")
    holdings = report.get("holdings", [])
    yield _HELD, [({name: str(holding.get(name, "")) for name in names}, 1) for holding in holdings]
    codes = {trouble["code"] for trouble in report["troubles"]}
    yield _TROUBLE, [({"code": code}, 1) for code in sorted(codes)]
    yield _LOOKED, [({}, report["taken_at"])]


def _values(metric: Metric, devices: Iterable[Mapping[str, Any]]) -> Values:
    for device in devices:
        if (value := device.get(metric.field)) is not None:
            yield {"uuid": device["uuid"]}, value * metric.factor


def _processes(gpus: Iterable[GpuSample]) -> Values:
    counts = Counter(
        (device["uuid"], process.get("pod_uid", ""))
        for gpu in gpus
        for device in (gpu, *gpu.get("mig", []))
        for process in device.get("processes", [])
    )
    return [({"uuid": uuid, "pod_uid": pod_uid}, count) for (uuid, pod_uid), count in counts.items()]


def _lines(metric: Metric, values: Values) -> Iterator[str]:
    """Yield the lines of a metric. A metric without values has none, not even HELP and TYPE."""
    for number, (labels, value) in enumerate(values):
        if not number:
            yield f"# HELP {metric.name} {metric.help}"
            yield f"# TYPE {metric.name} {'counter' if metric.name.endswith('_total') else 'gauge'}"
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
        yield f"{metric.name}{{{text}}} {float(value)!r}" if text else f"{metric.name} {float(value)!r}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
