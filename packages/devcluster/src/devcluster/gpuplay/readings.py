"""Values that a query of a card returns: utilization, temperature, memory, and its faults.

A faulty GPU answers as a real one does: a lost GPU answers every query with an error, one that must be reset answers
some. A GPU cut by MIG reports no utilization.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from devcluster.gpuplay.hardware import Card
from devcluster.gpuplay.users import Process
from devcluster.resources import Obj

_COOL_CELSIUS, _WARM_CELSIUS, _HOT_CELSIUS = 31.0, 46.0, 93.0
"""An idle card; how much warmer it gets by work; one that slows down."""
_WARMING_SECONDS = 25.0
_IDLE_WATTS_PART = 0.13
_IDLE_MHZ, _BUSY_MHZ, _SLOWED_MHZ, _MEMORY_MHZ = 210, 1410, 480, 1593
_FAILED = {"lost": "gpu_is_lost", "failing": "unknown", "reset_required": "reset_required"}
_READINGS = ("utilization", "memory", "power", "temperature", "slowed", "ecc_uncorrected", "rows")
_AFTER_RESET = ("memory", "processes")
"""What a GPU that must be reset does not answer."""
_TO_DO = {48: "drain_and_reset", 79: "node_reboot"}
_TO_DO |= dict.fromkeys((62, 64, 74, 95, 119, 120, 140, 143), "gpu_reset")
"""By Xid."""


@dataclass
class Gauge:
    """Card over time: it warms up slowly, and its counters are kept."""

    card: Card
    celsius: float = _COOL_CELSIUS
    read_at: float = 0.0
    ecc_ever: int = 0
    _counted: list[Obj] = field(default_factory=list)

    def read(self, processes: list[Process], ailments: list[Obj], at: float) -> Obj:
        """Return the reading at a time. `ailments` are the specs of the card's active faults."""
        state = next((a["state"] for a in ailments if "state" in a), "ok")
        if state == "gone":
            return {"uuid": self.card.uuid, "state": "gone"}
        if state in ("lost", "failing"):
            failed = dict.fromkeys(_READINGS, _FAILED[state])
            return {"uuid": self.card.uuid, "state": state, "failed": failed}
        found = {"uuid": self.card.uuid, "state": state, **self._values(processes, ailments, at)}
        if state == "reset_required":
            found = {k: v for k, v in found.items() if k not in ("memory_used_mib", "processes")}
            found["failed"] = dict.fromkeys(_AFTER_RESET, _FAILED[state])
        return found

    def _values(self, processes: list[Process], ailments: list[Obj], at: float) -> Obj:
        card = self.card
        busy = min(sum(process.use.busy for process in processes), 1.0)
        memory = min(sum(process.use.memory_mib for process in processes), card.memory_mib)
        hot = any(a.get("hot") for a in ailments)
        slowed = list(dict.fromkeys(a["slowed_by"] for a in ailments if "slowed_by" in a))
        slowed += ["hardware_heat"] if hot else []
        found: Obj = {
            "memory_used_mib": round(memory),
            "power_watts": round(card.power_limit_watts * (_IDLE_WATTS_PART + 0.8 * busy), 1),
            "temperature_celsius": self._celsius(busy, hot, at),
            "sm_clock_mhz": _SLOWED_MHZ if slowed else _BUSY_MHZ if busy > 0.01 else _IDLE_MHZ,
            "memory_clock_mhz": _MEMORY_MHZ,
            "pcie_generation": 4,
            "pcie_width": 16,
            "pcie_replays": 0,
            "slowed_by": slowed,
            "recovery_action": _recovery(ailments),
            "row_remap_pending": _rows(ailments, "pending"),
            "row_remap_failed": _rows(ailments, "failed"),
            "rows_remapped_corrected": 0,
            "rows_remapped_uncorrected": sum("row_remap" in a for a in ailments),
        }
        if card.ecc:
            found |= self._ecc(ailments)
        if card.instances:
            return found | {"mig": [_instance(one.uuid, processes) for one in card.instances]}
        found |= {"utilization_percent": round(100 * busy), "memory_busy_percent": round(60 * busy)}
        return found | {"processes": [_process(process, told_share=True) for process in processes]}

    def _celsius(self, busy: float, hot: bool, at: float) -> int:
        wanted = _HOT_CELSIUS if hot else _COOL_CELSIUS + _WARM_CELSIUS * busy
        passed = at - self.read_at if self.read_at else 0.0
        self.celsius += (wanted - self.celsius) * (1.0 if hot else min(passed / _WARMING_SECONDS, 1.0))
        self.read_at = at
        return round(self.celsius)

    def _ecc(self, ailments: list[Obj]) -> Obj:
        found = [a for a in ailments if "ecc_uncorrected" in a]
        new = [a for a in found if not any(a is known for known in self._counted)]
        self.ecc_ever += sum(int(a["ecc_uncorrected"]) for a in new)
        self._counted = found
        return {
            "ecc_uncorrected_since_boot": sum(int(a["ecc_uncorrected"]) for a in found),
            "ecc_uncorrected_ever": self.ecc_ever,
            "ecc_corrected_since_boot": 0,
            "ecc_corrected_ever": 0,
        }


def _recovery(ailments: list[Obj]) -> str:
    """Return the recovery action in NVML's words: what makes the card usable again."""
    for ailment in ailments:
        if ailment.get("state") == "reset_required":
            return "gpu_reset"
        if action := _TO_DO.get(int(ailment.get("xid", 0))):
            return action
    return "none"


def _rows(ailments: list[Obj], what: str) -> bool:
    return any(a.get("row_remap") == what for a in ailments)


def _instance(uuid: str, processes: Iterable[Process]) -> Obj:
    own = [process for process in processes if process.instance == uuid]
    return {
        "uuid": uuid,
        "memory_used_mib": round(sum(process.use.memory_mib for process in own)),
        "processes": [_process(process, told_share=False) for process in own],
    }


def _process(process: Process, *, told_share: bool) -> Obj:
    share = {"sm_percent": round(100 * process.use.busy)} if told_share else {}
    return {
        "pid": process.pid,
        "kind": "compute",
        "memory_mib": round(process.use.memory_mib),
        **share,
        "pod_uid": process.pod_uid,
        "container_id": process.container_id,
    }
