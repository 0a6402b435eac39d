"""The last report in Prometheus' text format. A value without an answer has no line.

Written by hand (`_lines`): prometheus_client would replace these few lines only, and would be a second package in every
node's agent. The tests read the text with prometheus_client's parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .schema import GpuSample, Inventory, Look

MIB = 1 << 20
Labels = Mapping[str, str]


class _Metric(NamedTuple):
    name: str
    kind: str
    words: str
    field: str = ""
    factor: float = 1


_OF_A_GPU = (
    _Metric(
        "berth_gpu_utilization_ratio", "gauge", "Time in which a kernel ran.", "utilization_percent", 0.01
    ),
    _Metric(
        "berth_gpu_memory_busy_ratio",
        "gauge",
        "Time in which memory was read or written.",
        "memory_busy_percent",
        0.01,
    ),
    _Metric("berth_gpu_memory_used_bytes", "gauge", "Memory in use.", "memory_used_mib", MIB),
    _Metric("berth_gpu_power_watts", "gauge", "Power drawn.", "power_watts"),
    _Metric("berth_gpu_temperature_celsius", "gauge", "Temperature of the GPU.", "temperature_celsius"),
    _Metric(
        "berth_gpu_memory_temperature_celsius",
        "gauge",
        "Temperature of its memory.",
        "memory_temperature_celsius",
    ),
    _Metric("berth_gpu_sm_clock_hertz", "gauge", "Clock of its processors.", "sm_clock_mhz", 1e6),
    _Metric("berth_gpu_memory_clock_hertz", "gauge", "Clock of its memory.", "memory_clock_mhz", 1e6),
    _Metric("berth_gpu_pcie_generation", "gauge", "Generation of its PCIe link now.", "pcie_generation"),
    _Metric("berth_gpu_pcie_lanes", "gauge", "Lanes of its PCIe link now.", "pcie_width"),
    _Metric("berth_gpu_pcie_replays_total", "counter", "Packets sent again over PCIe.", "pcie_replays"),
    _Metric("berth_gpu_pcie_sent_bytes_total", "counter", "Sent over PCIe.", "pcie_sent_bytes"),
    _Metric("berth_gpu_pcie_received_bytes_total", "counter", "Received over PCIe.", "pcie_received_bytes"),
    _Metric("berth_gpu_nvlink_sent_bytes_total", "counter", "Sent over NVLink.", "nvlink_sent_kib", 1024),
    _Metric(
        "berth_gpu_nvlink_received_bytes_total",
        "counter",
        "Received over NVLink.",
        "nvlink_received_kib",
        1024,
    ),
    _Metric(
        "berth_gpu_ecc_uncorrected_total",
        "counter",
        "Uncorrected ECC errors since boot.",
        "ecc_uncorrected_since_boot",
    ),
    _Metric(
        "berth_gpu_ecc_uncorrected_ever_total", "counter", "Uncorrected ECC errors.", "ecc_uncorrected_ever"
    ),
    _Metric(
        "berth_gpu_ecc_corrected_total",
        "counter",
        "Corrected ECC errors since boot.",
        "ecc_corrected_since_boot",
    ),
    _Metric("berth_gpu_ecc_corrected_ever_total", "counter", "Corrected ECC errors.", "ecc_corrected_ever"),
    _Metric(
        "berth_gpu_rows_remapped_uncorrected",
        "gauge",
        "Rows remapped for uncorrected errors.",
        "rows_remapped_uncorrected",
    ),
    _Metric(
        "berth_gpu_rows_remapped_corrected",
        "gauge",
        "Rows remapped for corrected errors.",
        "rows_remapped_corrected",
    ),
    _Metric(
        "berth_gpu_row_remap_pending", "gauge", "A row waits for a reset to be remapped.", "row_remap_pending"
    ),
    _Metric("berth_gpu_row_remap_failed", "gauge", "A row could not be remapped.", "row_remap_failed"),
)
_UP = _Metric("berth_gpu_up", "gauge", "Whether the GPU answers.")
_INFO = _Metric("berth_gpu_info", "gauge", "What the GPU is.")
_MEMORY = _Metric("berth_gpu_memory_bytes", "gauge", "Memory of the GPU.")
_SLOWED = _Metric("berth_gpu_slowed", "gauge", "Why its clocks are lower than they could be.")
_TO_DO = _Metric("berth_gpu_recovery_action", "gauge", "What has to be done before the GPU works well again.")
_PROCESSES = _Metric("berth_gpu_processes", "gauge", "Processes on the GPU, by pod.")
_MIG_MEMORY = _Metric("berth_gpu_mig_memory_used_bytes", "gauge", "Memory in use of a MIG device.")
_HELD = _Metric("berth_gpu_held", "gauge", "Which container the kubelet gave the device to.")
_XIDS = _Metric("berth_gpu_xids_total", "counter", "Errors of the driver (Xid) since this agent began.")
_TROUBLE = _Metric("berth_agent_trouble", "gauge", "What is wrong with the node or the agent.")
_LOOKED = _Metric("berth_agent_last_look_timestamp_seconds", "gauge", "When the agent looked last.")


class Counted(NamedTuple):
    """Metric of the agent itself."""

    name: str
    words: str
    value: float


def text(
    report: Look | None,
    inventory: Inventory | None,
    xids: Mapping[tuple[str, int], int],
    own: Iterable[Counted],
) -> str:
    lines: list[str] = []
    if inventory:
        lines += _lines(_INFO, _infos(inventory))
        lines += _lines(
            _MEMORY,
            [
                ({"uuid": gpu["uuid"]}, gpu["memory_mib"] * MIB)
                for gpu in inventory["gpus"]
                if "memory_mib" in gpu
            ],
        )
    if report:
        lines += _of_report(report)
    lines += _lines(_XIDS, [({"uuid": uuid, "xid": str(xid)}, count) for (uuid, xid), count in xids.items()])
    for name, words, value in own:
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += _lines(_Metric(name, kind, words), [({}, value)])
    return "".join(f"{line}\n" for line in lines)


def _of_report(report: Look) -> Iterator[str]:
    gpus = report["gpus"]
    yield from _lines(_UP, [({"uuid": gpu["uuid"]}, gpu["state"] == "ok") for gpu in gpus])
    for metric in _OF_A_GPU:
        yield from _lines(metric, _values(metric, gpus))
    yield from _lines(
        _SLOWED, [({"uuid": gpu["uuid"], "by": by}, 1) for gpu in gpus for by in gpu.get("slowed_by", [])]
    )
    yield from _lines(
        _TO_DO,
        [
            ({"uuid": gpu["uuid"], "action": gpu["recovery_action"]}, 1)
            for gpu in gpus
            if "recovery_action" in gpu
        ],
    )
    yield from _lines(_PROCESSES, _processes(gpus))
    mig = [device for gpu in gpus for device in gpu.get("mig", [])]
    yield from _lines(
        _MIG_MEMORY,
        [({"uuid": one["uuid"]}, one["memory_used_mib"] * MIB) for one in mig if "memory_used_mib" in one],
    )
    yield from _lines(
        _HELD,
        [
            (
                {
                    key: str(holding.get(key, ""))
                    for key in ("uuid", "device", "namespace", "pod", "container")
                },
                1,
            )
            for holding in report.get("holdings", [])
        ],
    )
    yield from _lines(
        _TROUBLE, [({"code": code}, 1) for code in sorted({t["code"] for t in report["troubles"]})]
    )
    yield from _lines(_LOOKED, [({}, report["taken_at"])])


def _infos(inventory: Inventory) -> Iterator[tuple[Labels, float]]:
    for gpu in inventory["gpus"]:
        known = {
            "uuid": gpu["uuid"],
            "index": gpu["index"],
            "name": gpu.get("name", ""),
            "compute_capability": gpu.get("compute_capability", ""),
            "pci_bus": gpu.get("pci_bus", ""),
            "driver_version": inventory.get("driver_version", ""),
            "cuda_version": inventory.get("cuda_version", ""),
        }
        yield {key: str(value) for key, value in known.items()}, 1


def _values(metric: _Metric, gpus: Iterable[GpuSample]) -> Iterator[tuple[Labels, float]]:
    for gpu in gpus:
        value = gpu.get(metric.field)
        if isinstance(value, int | float):
            yield {"uuid": gpu["uuid"]}, value * metric.factor


def _processes(gpus: Iterable[GpuSample]) -> Iterator[tuple[Labels, float]]:
    counts: dict[tuple[str, str], int] = {}
    for gpu in gpus:
        for device in (gpu, *gpu.get("mig", [])):
            for process in device.get("processes", []):
                key = (device["uuid"], process.get("pod_uid", ""))
                counts[key] = counts.get(key, 0) + 1
    for (uuid, pod_uid), count in counts.items():
        yield {"uuid": uuid, "pod_uid": pod_uid}, count


def _lines(metric: _Metric, values: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """Yield the lines of a metric. A metric without values has none, not even HELP and TYPE."""
    headed = False
    for labels, value in values:
        if not headed:
            yield f"# HELP {metric.name} {metric.words}"
            yield f"# TYPE {metric.name} {metric.kind}"
            headed = True
        told = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
        yield f"{metric.name}{{{told}}} {float(value)!r}" if told else f"{metric.name} {float(value)!r}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
