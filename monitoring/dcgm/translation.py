"""Series of dcgm-exporter into the batches that a node's agent would send. Pure.

- A sample counts only if it belongs to the newest scrape of its node: a series lives on for a while after its pod or
  its GPU has gone.
- A GPU that several pods share comes once per pod, each time with the figures of the whole GPU: they are taken once.
  From 4.6 on, use and memory come once for the whole GPU, without a pod, and once per pod with that pod's part.
- Prometheus sets a label `pod` of its own and renames the exporter's to `exported_pod`, unless it honours labels. A GPU
  that no pod has keeps only Prometheus' label: the exporter's own pod, which requests no device.
- HAMi gives pods other GPUs than the kubelet chose, and the exporter knows the kubelet's choice. Such pods are reported
  without a GPU, as an agent does, and their own rows name it.
- A MIG device has no UUID of NVML's here. It gets the older form, made of its GPU and its instance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from monitoring.agent.schema import (
    VERSION,
    Batch,
    GpuFacts,
    GpuSample,
    Holding,
    Inventory,
    MigFacts,
    MigSample,
    Report,
)
from monitoring.dcgm import xids
from monitoring.dcgm.prometheus import Series

AGENT = "prometheus"
MINUTES = 2  # a series without newer samples still means that its GPU is there for this long
# Samples of one scrape have one time; two jobs may scrape the same exporter.
ONE_SCRAPE_SECONDS = 5.0
# DCGM writes "blank" as a number near the largest of its type.
BLANK = 2.0**31 - 64
# Difference in memory size that rounding of the parts can cause.
MEMORY_MAY_DIFFER_MIB = 16

ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ECC = "DCGM_FI_DEV_ECC_CURRENT"  # 1: on
MEMORY = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
# The exporter's default configuration does not collect the fields after the empty line.
OF_THE_GPU = {
    "DCGM_FI_DEV_GPU_UTIL": "utilization_percent",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "memory_busy_percent",
    "DCGM_FI_DEV_POWER_USAGE": "power_watts",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_celsius",
    "DCGM_FI_DEV_MEMORY_TEMP": "memory_temperature_celsius",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
    "DCGM_FI_DEV_MEM_CLOCK": "memory_clock_mhz",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "pcie_replays",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "rows_remapped_corrected",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "rows_remapped_uncorrected",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "row_remap_failed",
    xids.LAST: "last_xid",

    "DCGM_FI_DEV_ROW_REMAP_PENDING": "row_remap_pending",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrected_since_boot",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "ecc_uncorrected_ever",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "ecc_corrected_since_boot",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": "ecc_corrected_ever",
}  # fmt: skip
METRICS = (*OF_THE_GPU, *MEMORY, ACTIVE, ECC, xids.COUNT)
_YES_OR_NO = {"row_remap_failed", "row_remap_pending"}
_WITH_FRACTION = {"power_watts"}
# Labels of the exporter until May 2026, labels since then, and labels set by scrapers.
_NODE_LABELS = ("Hostname", "hostname", "node", "kubernetes_node")
_OF_A_USER = ("namespace", "pod", "container")

Pod = tuple[str, str]  # namespace and name


@dataclass(frozen=True)
class Known:
    """Facts from rows, beside the series. `pods`: pods that request a device, with their nodes."""

    nodes: frozenset[str]
    pods: Mapping[Pod, str] = field(default_factory=dict)
    by_hami: frozenset[Pod] = frozenset()
    memory_mib: Mapping[str, int] = field(default_factory=dict)
    xids: Mapping[str, xids.EarlierReading] = field(default_factory=dict)


class _Newest(NamedTuple):
    """Newest sample. Order: the newest first; within one scrape, one without a user, which is certain to be whole."""

    at: float
    is_whole: bool
    value: float


@dataclass
class _Part:
    """A GPU or a MIG instance: its newest sample of each metric, and its users."""

    labels: dict[str, str] = field(default_factory=dict)
    newest: dict[str, _Newest] = field(default_factory=dict)
    users: dict[tuple[str, str, str, str], float] = field(default_factory=dict)

    def add(self, metric: str, series: Series, user: tuple[str, str, str, str] | None) -> None:
        at, value = series.samples[-1]
        if not self.newest or at >= self.at:
            self.labels = series.labels
        sample = _Newest(at, user is None, value)
        self.newest[metric] = max(sample, self.newest.get(metric, sample))
        if user:
            self.users[user] = max(at, self.users.get(user, 0.0))

    @property
    def at(self) -> float:
        return max(newest.at for newest in self.newest.values())


@dataclass
class _Gpu:
    whole: _Part = field(default_factory=_Part)
    instances: dict[str, _Part] = field(default_factory=lambda: defaultdict(_Part))
    xids: xids.Scrapes = field(default_factory=xids.Scrapes)

    @property
    def parts(self) -> list[_Part]:
        return [part for part in (self.whole, *self.instances.values()) if part.newest]

    @property
    def labels(self) -> dict[str, str]:
        return max(self.parts, key=lambda part: part.at).labels


_Node = dict[str, _Gpu]


def batches(found: Mapping[str, Iterable[Series]], known: Known, now: float) -> Iterator[Batch]:
    """Yield a batch for each node with data. `now` is in seconds since 1970."""
    for name, gpus in sorted(_gathered(found, known).items()):
        at = max(part.at for gpu in gpus.values() for part in gpu.parts)
        report: Report = {
            "sequence": int(at * 1000),
            "taken_at": at,
            "troubles": [],
            "gpus": [_sample(uuid, gpu, at) for uuid, gpu in gpus.items() if _is_of(gpu, at)],
            "xids": [
                {"xid": xid, "at": at, "uuid": uuid}
                for uuid, gpu in gpus.items()
                for xid, at in gpu.xids.new(known.xids.get(uuid))
            ],
        }
        holdings = [holding for uuid, gpu in gpus.items() for holding in _holdings(uuid, gpu, at)]
        holdings += [
            {"namespace": namespace, "pod": pod, "container": "", "resource": "", "device": ""}
            for namespace, pod in sorted(known.by_hami)
            if known.pods.get((namespace, pod)) == name
        ]
        if holdings or name not in known.pods.values():  # otherwise the node's exporter does not know pods
            report["holdings"] = holdings
        yield {
            "version": VERSION,
            "node": name,
            "agent": AGENT,
            "sent_at": now,
            "dropped": 0,
            "inventory": _inventory(gpus, known),
            "reports": [report],
        }


def _gathered(found: Mapping[str, Iterable[Series]], known: Known) -> dict[str, _Node]:
    nodes: dict[str, _Node] = defaultdict(lambda: defaultdict(_Gpu))
    for metric, all_series in found.items():
        for labels, samples in all_series:
            series = Series(labels, [sample for sample in samples if 0 <= sample[1] < BLANK])
            uuid, node = labels.get("UUID", ""), _node_of(labels, known.nodes)
            if not (uuid and node and series.samples):
                continue
            gpu, instance = nodes[node][uuid], labels.get("GPU_I_ID", "")
            part = gpu.instances[instance] if instance else gpu.whole
            part.add(metric, series, _user_of(labels, known))
            gpu.xids.add(metric, series)
    return nodes


def _node_of(labels: Mapping[str, str], nodes: frozenset[str]) -> str:
    """Return the node by its host name, with or without the domain; "" if unknown."""
    hosts = [labels[name] for name in _NODE_LABELS if name in labels]
    names = (name for host in hosts for name in (host, host.partition(".")[0]))
    return next((name for name in names if name in nodes), "")


def _user_of(labels: Mapping[str, str], known: Known) -> tuple[str, str, str, str] | None:
    """Return namespace, pod and container that use the GPU, and their share; None if unknown."""
    for prefix in ("exported_", ""):
        namespace, pod, container = (labels.get(prefix + name, "") for name in _OF_A_USER)
        if pod and (prefix or (namespace, pod) in known.pods) and (namespace, pod) not in known.by_hami:
            return namespace, pod, container, labels.get("vgpu", "")
    return None


def _is_of(gpu: _Gpu, at: float) -> bool:
    return any(at - part.at <= ONE_SCRAPE_SECONDS for part in gpu.parts)


def _values(parts: Sequence[_Part], at: float) -> dict[str, float]:
    """Return the values of this scrape by metric. Each instance repeats values of the whole GPU."""
    return {
        metric: newest.value
        for part in parts
        for metric, newest in part.newest.items()
        if at - newest.at <= ONE_SCRAPE_SECONDS
    }


def _sample(uuid: str, gpu: _Gpu, at: float) -> GpuSample:
    everywhere, whole = _values(gpu.parts, at), _values([gpu.whole], at)
    known = {
        name: _number(name, everywhere[metric]) for metric, name in OF_THE_GPU.items() if metric in everywhere
    }
    sample: dict[str, Any] = {"uuid": uuid, "state": "ok"} | known
    if MEMORY[0] in whole:
        sample["memory_used_mib"] = int(whole[MEMORY[0]])
    counts = gpu.xids.newest(at - ONE_SCRAPE_SECONDS)
    if counts is not None:
        sample["xid_counts"] = [{"xid": xid, "count": count} for xid, count in sorted(counts.items())]
    if gpu.instances:
        sample.pop("utilization_percent", None)  # meaningless where MIG is on
        sample["mig"] = [_mig(uuid, instance, part, at) for instance, part in sorted(gpu.instances.items())]
    elif "utilization_percent" not in sample and ACTIVE in whole:
        sample["utilization_percent"] = _percent(whole[ACTIVE])
    return cast(GpuSample, sample)


def _mig(uuid: str, instance: str, part: _Part, at: float) -> MigSample:
    values = _values([part], at)
    sample: MigSample = {"uuid": _mig_uuid(uuid, instance)}
    if MEMORY[0] in values:
        sample["memory_used_mib"] = int(values[MEMORY[0]])
    if ACTIVE in values:
        sample["utilization_percent"] = _percent(values[ACTIVE])
    return sample


def _mig_uuid(uuid: str, instance: str) -> str:
    return f"MIG-{uuid}/{instance}/0"


def _number(name: str, value: float) -> float | int | bool:
    if name in _YES_OR_NO:
        return value != 0
    return value if name in _WITH_FRACTION else round(value)


def _percent(ratio: float) -> int:
    return min(round(ratio * 100), 100)


def _holdings(uuid: str, gpu: _Gpu, at: float) -> Iterator[Holding]:
    for instance, part in (("", gpu.whole), *sorted(gpu.instances.items())):
        device = _mig_uuid(uuid, instance) if instance else uuid
        users = sorted(user for user, seen in part.users.items() if at - seen <= ONE_SCRAPE_SECONDS)
        for namespace, pod, container, share in users:
            yield {
                "namespace": namespace,
                "pod": pod,
                "container": container,
                "resource": "",
                "device": f"{device}::{share}" if share else device,
                "uuid": device,
            }


# --- inventory


def _inventory(gpus: _Node, known: Known) -> Inventory:
    inventory: Inventory = {"gpus": [_facts(uuid, gpu, known) for uuid, gpu in gpus.items()]}
    versions = [gpu.labels.get("DCGM_FI_DRIVER_VERSION", "") for gpu in gpus.values()]
    if version := max(versions):
        inventory["driver_version"] = version
    return inventory


def _facts(uuid: str, gpu: _Gpu, known: Known) -> GpuFacts:
    labels = gpu.labels
    index = labels.get("gpu", "")
    mig = [_mig_facts(uuid, instance, part) for instance, part in sorted(gpu.instances.items())]
    facts: GpuFacts = {"index": int(index) if index.isdecimal() else 0, "uuid": uuid, "mig_devices": mig}
    if name := labels.get("modelName"):
        facts["name"] = name
    if bus := labels.get("pci_bus_id"):
        facts["pci_bus"] = bus.lower()
    if modes := [part.newest[ECC] for part in gpu.parts if ECC in part.newest]:
        facts["ecc"] = max(modes).value != 0
    if mig:
        facts["mig"] = True
    elif memory := _memory(gpu.whole):
        before = known.memory_mib.get(uuid, memory)
        facts["memory_mib"] = before if abs(before - memory) <= MEMORY_MAY_DIFFER_MIB else memory
    return facts


def _mig_facts(uuid: str, instance: str, part: _Part) -> MigFacts:
    facts: MigFacts = {"uuid": _mig_uuid(uuid, instance)}
    if instance.isdecimal():
        facts["gpu_instance"] = int(instance)
    if profile := part.labels.get("GPU_I_PROFILE"):
        facts["name"] = f"MIG {profile}"
    return facts


def _memory(part: _Part) -> int:
    """Return the size in MiB, summed from its parts. Older exporters omit the part that the driver reserves."""
    sizes = [part.newest[metric].value for metric in MEMORY if metric in part.newest]
    return int(sum(sizes)) if len(sizes) > 1 else 0
