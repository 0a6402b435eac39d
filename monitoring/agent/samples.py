"""Activity of a GPU at this moment, and its processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pynvml

from .inventory import MIB, Device
from .nvml import Failed, Handle, NotOffered, ask, first_offered, read
from .schema import GpuSample, MigSample, Process, State

# Utilization by process covers this time before the look.
WINDOW_SECONDS = 10
ALL_LINKS = 0xFFFFFFFF

_SLOWED_BY = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power_cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync_boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "heat",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware_heat",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power_brake",
}
# Types that cannot wrap between two looks: a 32-bit counter is useless for a link that carries gigabytes.
_WIDE = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
}
_SMALL = {pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal"}
_FIELDS = {
    "memory_temperature_celsius": (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0, _WIDE | _SMALL),
    "pcie_sent_bytes": (pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, _WIDE),
    "pcie_received_bytes": (pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0, _WIDE),
    "nvlink_sent_kib": (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS, _WIDE),
    "nvlink_received_kib": (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS, _WIDE),
    "recovery_action": (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0, _WIDE | _SMALL),
}
_ACTION = "NVML_GPU_RECOVERY_ACTION_"
_ACTIONS = {
    value: name.removeprefix(_ACTION).lower()
    for name, value in vars(pynvml).items()
    if name.startswith(_ACTION)
}

Owner = Callable[[int], dict[str, str]]  # pod and container by process ID, or nothing


def take(device: Device, owner: Owner) -> GpuSample:
    who = _Processes(owner)
    values, failed = read(READINGS if device.mig else (*READINGS, who.processes), device.handle)
    sample: dict[str, Any] = {"uuid": device.uuid, "state": _state(values, failed)} | values
    if device.mig:
        sample["mig"] = [_mig(uuid, handle, who) for uuid, handle in device.mig]
    return cast(GpuSample, sample | ({"failed": failed} if failed else {}))


def _mig(uuid: str, handle: Handle, who: _Processes) -> MigSample:
    values, failed = read((memory, who.processes), handle)
    return cast(MigSample, {"uuid": uuid} | values | ({"failed": failed} if failed else {}))


def _state(values: dict[str, Any], failed: dict[str, str]) -> State:
    errors = set(failed.values())
    if "gpu_is_lost" in errors:
        return "lost"
    if "reset_required" in errors:
        return "reset_required"
    return "failing" if failed and not values else "ok"


# --- Readings: a few fields each, named in `failed` by the function's name


def utilization(handle: Handle) -> dict[str, Any]:
    rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    return {"utilization_percent": rates.gpu, "memory_busy_percent": rates.memory}


def memory(handle: Handle) -> dict[str, Any]:
    """Read the memory in use as nvidia-smi counts it: without the driver's own, if the driver separates the two."""
    info = first_offered(
        partial(ask, pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2),
        partial(ask, pynvml.nvmlDeviceGetMemoryInfo, handle),
    )
    return {"memory_used_mib": info.used // MIB}


def power(handle: Handle) -> dict[str, Any]:
    return {"power_watts": ask(pynvml.nvmlDeviceGetPowerUsage, handle) / 1000}


def temperature(handle: Handle) -> dict[str, Any]:
    celsius = first_offered(
        partial(ask, pynvml.nvmlDeviceGetTemperatureV, handle, pynvml.NVML_TEMPERATURE_GPU),
        partial(ask, pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
    )
    return {"temperature_celsius": celsius}


def sm_clock(handle: Handle) -> dict[str, Any]:
    return {"sm_clock_mhz": ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM)}


def memory_clock(handle: Handle) -> dict[str, Any]:
    return {"memory_clock_mhz": ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM)}


def pcie_generation(handle: Handle) -> dict[str, Any]:
    return {"pcie_generation": ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle)}


def pcie_width(handle: Handle) -> dict[str, Any]:
    return {"pcie_width": ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle)}


def pcie_replays(handle: Handle) -> dict[str, Any]:
    return {"pcie_replays": ask(pynvml.nvmlDeviceGetPcieReplayCounter, handle)}


def counters(handle: Handle) -> dict[str, Any]:
    """Read all counters in one call. Each answer has its own result code and type."""
    wanted = [(field, scope) for field, scope, _ in _FIELDS.values()]
    answers = ask(pynvml.nvmlDeviceGetFieldValues, handle, wanted)
    values = {
        name: getattr(answer.value, types[answer.valueType])
        for (name, (_, _, types)), answer in zip(_FIELDS.items(), answers, strict=True)
        if answer.nvmlReturn == pynvml.NVML_SUCCESS and answer.valueType in types
    }
    if (action := values.get("recovery_action")) is not None:
        values["recovery_action"] = _ACTIONS.get(action, f"action_{action}")
    return values


def slowed(handle: Handle) -> dict[str, Any]:
    bits = first_offered(
        partial(ask, pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle),
        partial(ask, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
    )
    return {"slowed_by": [name for bit, name in _SLOWED_BY.items() if bits & bit]}


def ecc_uncorrected(handle: Handle) -> dict[str, Any]:
    return _ecc(handle, "uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)


def ecc_corrected(handle: Handle) -> dict[str, Any]:
    return _ecc(handle, "corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED)


def _ecc(handle: Handle, kind: str, number: int) -> dict[str, Any]:
    since_boot = ask(pynvml.nvmlDeviceGetTotalEccErrors, handle, number, pynvml.NVML_VOLATILE_ECC)
    ever = ask(pynvml.nvmlDeviceGetTotalEccErrors, handle, number, pynvml.NVML_AGGREGATE_ECC)
    return {f"ecc_{kind}_since_boot": since_boot, f"ecc_{kind}_ever": ever}


def rows(handle: Handle) -> dict[str, Any]:
    corrected, uncorrected, pending, failed = ask(pynvml.nvmlDeviceGetRemappedRows, handle)
    return {
        "rows_remapped_corrected": corrected,
        "rows_remapped_uncorrected": uncorrected,
        "row_remap_pending": bool(pending),
        "row_remap_failed": bool(failed),
    }


READINGS = (
    utilization, memory, power, temperature, sm_clock, memory_clock, pcie_generation, pcie_width, pcie_replays,
    counters, slowed, ecc_uncorrected, ecc_corrected, rows,
)  # fmt: skip


class _Processes:
    """Reading of processes, which needs to find their pods."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def processes(self, handle: Handle) -> dict[str, Any]:
        found: dict[int, Process] = {}
        for process in _running(handle, "Compute"):
            found[process.pid] = self._entry("compute", process)
        for process in _quietly(partial(_running, handle, "Graphics"), []):
            found.setdefault(process.pid, self._entry("graphics", process))
        for pid, percent in _quietly(partial(_busy, handle), {}).items() if found else ():
            if pid in found:
                found[pid]["sm_percent"] = percent
        return {"processes": list(found.values())}

    def _entry(self, kind: str, process: Any) -> Process:
        entry = {"pid": process.pid, "kind": kind} | self._owner(process.pid)
        if process.usedGpuMemory is not None:  # not known inside some virtual machines
            entry["memory_mib"] = process.usedGpuMemory // MIB
        return cast(Process, entry)


def _running(handle: Handle, kind: str) -> Any:
    """Return the processes. Drivers before 510 have version 2 of the call only."""
    versions = (getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_{version}") for version in ("v3", "v2"))
    return first_offered(*(partial(ask, version, handle) for version in versions))


def _busy(handle: Handle) -> dict[int, int]:
    """Return the newest share by process, in percent. Drivers are known to report values above 100: ignore them."""
    since = int((time.time() - WINDOW_SECONDS) * 1_000_000)
    shares = ask(pynvml.nvmlDeviceGetProcessUtilization, handle, since)
    in_order = sorted(shares, key=lambda sample: sample.timeStamp)
    return {sample.pid: sample.smUtil for sample in in_order if sample.smUtil <= 100}


def _quietly(call: Callable[[], Any], otherwise: Any) -> Any:
    """Return the answer or, if there is none, `otherwise`: an optional value must not fail the whole reading."""
    try:
        return call()
    except (NotOffered, Failed):
        return otherwise
