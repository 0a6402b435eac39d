"""Simulated GPUs of the stand-in, and NVML's functions, named and typed as in nvml.h."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from ctypes import c_char, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pynvml

if TYPE_CHECKING:
    from tests.monitoring.agent.stand_in import StandIn

MIB = 1 << 20
TRANSPARENT = 0xFFFFFFFF
_EVENTS = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeClock
Answer = Callable[..., int | None]
FUNCTIONS: dict[str, tuple[tuple[Any, ...], Answer]] = {}


@dataclass
class Running:
    pid: int
    memory_mib: int | None = 100
    sm_percent: int = 50
    is_graphics: bool = False


@dataclass
class Instance:
    uuid: str
    gpu_instance: int = 1
    memory_mib: int = 9856
    used_mib: int = 40
    processes: list[Running] = field(default_factory=list)


@dataclass
class Gpu:
    """GPU of the stand-in. None: not offered."""

    uuid: str = "GPU-00000000-0000-4000-8000-000000000000"
    name: bytes = b"NVIDIA H100 80GB HBM3"
    memory_mib: int = 81559
    used_mib: int = 1234
    reserved_mib: int = 600
    utilization: int | None = 37
    power_milliwatts: int | None = 415_250
    celsius: int | None = 61
    memory_celsius: int | None = 70
    sm_mhz: int = 1980
    memory_mhz: int = 2619
    ecc: bool | None = True
    uncorrected: tuple[int, int] = (0, 2)
    corrected: tuple[int, int] = (3, 17)
    rows: tuple[int, int, int, int] | None = (1, 0, 0, 0)
    slowed: int = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonGpuIdle
    nvlink_kib: int | None = 1 << 40
    pcie_bytes: int | None = 1 << 41
    recovery_action: int | None = pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    field_error: int = pynvml.NVML_ERROR_NOT_SUPPORTED  # for a field in a call with several
    processes: list[Running] = field(default_factory=list)
    mig: list[Instance] | None = None


class NotOffered(Exception):
    pass


def c(*types: Any) -> Callable[[Answer], Answer]:
    def register(method: Answer) -> Answer:
        FUNCTIONS[method.__name__] = (types, method)
        return method

    return register


class Out:
    """Pointer to the place of an answer; for ctypes it is a void pointer."""

    def __init__(self, type: Any) -> None:
        self.type = type

    def put(self, address: int, value: Any) -> None:
        self.type.from_address(address).value = value


UINT, INT, ULL = Out(c_uint), Out(c_int), Out(c_ulonglong)
TEXT = Out(c_char * 16)
HANDLE = Out(c_void_p)


def offered(value: Any) -> Any:
    if value is None:
        raise NotOffered
    return value


def text(address: int, value: bytes, size: int) -> None:
    assert len(value) < size
    ctypes.memmove(address, value + b"\0", len(value) + 1)


@c(c_uint)
def nvmlInitWithFlags(self: StandIn, flags: int) -> int:
    self.began += 1
    return 0


@c()
def nvmlShutdown(self: StandIn) -> int:
    self.began -= 1
    return 0


@c(TEXT, c_uint)
def nvmlSystemGetDriverVersion(self: StandIn, buffer: int, size: int) -> None:
    text(buffer, b"570.86.15", size)


@c(INT)
def nvmlSystemGetCudaDriverVersion_v2(self: StandIn, version: int) -> None:
    INT.put(version, 12080)


@c(UINT)
def nvmlDeviceGetCount_v2(self: StandIn, count: int) -> None:
    UINT.put(count, len(self.gpus))


@c(c_uint, HANDLE)
def nvmlDeviceGetHandleByIndex_v2(self: StandIn, index: int, handle: int) -> int:
    if self.gpus[index].uuid in self.lost:
        return pynvml.NVML_ERROR_GPU_IS_LOST
    HANDLE.put(handle, self.handle(self.gpus[index]))
    return 0


# --- A few values of a GPU; None: not offered


def _values(name: str, outs: tuple[Out, ...], values: Callable[[Gpu], tuple[Any, ...]]) -> None:
    def answer(self: StandIn, handle: int, *places: int) -> None:
        for out, place, value in zip(outs, places, values(self.at(handle)), strict=True):
            out.put(place, offered(value))

    FUNCTIONS[name] = ((c_void_p, *outs), answer)


_values("nvmlDeviceGetEccMode", (UINT, UINT), lambda gpu: (gpu.ecc, True))
_values("nvmlDeviceGetCudaComputeCapability", (INT, INT), lambda gpu: (9, 0))
_values("nvmlDeviceGetEnforcedPowerLimit", (UINT,), lambda gpu: (700_000,))
_values("nvmlDeviceGetMigMode", (UINT, UINT), lambda gpu: (gpu.mig is not None, 0))
_values("nvmlDeviceGetMaxMigDeviceCount", (UINT,), lambda gpu: (7,))
_values("nvmlDeviceGetPowerUsage", (UINT,), lambda gpu: (gpu.power_milliwatts,))
_values("nvmlDeviceGetCurrPcieLinkGeneration", (UINT,), lambda gpu: (5,))
_values("nvmlDeviceGetCurrPcieLinkWidth", (UINT,), lambda gpu: (16,))
_values("nvmlDeviceGetPcieReplayCounter", (UINT,), lambda gpu: (4,))
_values("nvmlDeviceGetCurrentClocksEventReasons", (ULL,), lambda gpu: (gpu.slowed,))
_values("nvmlDeviceGetCurrentClocksThrottleReasons", (ULL,), lambda gpu: (gpu.slowed,))
_values("nvmlDeviceGetRemappedRows", (UINT,) * 4, lambda gpu: offered(gpu.rows))
_values("nvmlDeviceGetSupportedEventTypes", (ULL,), lambda gpu: (_EVENTS,))


# --- Facts of a GPU


@c(c_void_p, TEXT, c_uint)
def nvmlDeviceGetUUID(self: StandIn, handle: int, buffer: int, size: int) -> None:
    text(buffer, (self.instance(handle) or self.at(handle)).uuid.encode(), size)


@c(c_void_p, TEXT, c_uint)
def nvmlDeviceGetName(self: StandIn, handle: int, buffer: int, size: int) -> None:
    text(buffer, self.at(handle).name + (b" MIG 1g.10gb" if self.instance(handle) else b""), size)


@c(c_void_p, Out(pynvml.c_nvmlMemory_t))
def nvmlDeviceGetMemoryInfo(self: StandIn, handle: int, memory: int) -> None:
    to, gpu = pynvml.c_nvmlMemory_t.from_address(memory), self.instance(handle) or self.at(handle)
    to.total, to.used = gpu.memory_mib * MIB, (gpu.used_mib + getattr(gpu, "reserved_mib", 0)) * MIB
    to.free = to.total - to.used


@c(c_void_p, Out(pynvml.c_nvmlMemory_v2_t))
def nvmlDeviceGetMemoryInfo_v2(self: StandIn, handle: int, memory: int) -> int:
    to, gpu = pynvml.c_nvmlMemory_v2_t.from_address(memory), self.instance(handle) or self.at(handle)
    if to.version != pynvml.nvmlMemory_v2:
        return pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    to.total, to.used = gpu.memory_mib * MIB, gpu.used_mib * MIB
    return 0


@c(c_void_p, Out(pynvml.nvmlPciInfo_t))
def nvmlDeviceGetPciInfo_v3(self: StandIn, handle: int, info: int) -> None:
    pynvml.nvmlPciInfo_t.from_address(info).busId = b"00000000:1B:00.0"


# --- MIG


@c(c_void_p, c_uint, HANDLE)
def nvmlDeviceGetMigDeviceHandleByIndex(self: StandIn, handle: int, index: int, found: int) -> int:
    if index >= len(self.at(handle).mig or []):
        return pynvml.NVML_ERROR_NOT_FOUND
    HANDLE.put(found, handle + index + 1)
    return 0


@c(c_void_p, UINT)
def nvmlDeviceGetGpuInstanceId(self: StandIn, handle: int, id: int) -> None:
    UINT.put(id, offered(self.instance(handle)).gpu_instance)


@c(c_void_p, UINT)
def nvmlDeviceGetComputeInstanceId(self: StandIn, handle: int, id: int) -> None:
    UINT.put(id, 0 * offered(self.instance(handle)).gpu_instance)


# --- Activity


@c(c_void_p, Out(pynvml.c_nvmlUtilization_t))
def nvmlDeviceGetUtilizationRates(self: StandIn, handle: int, rates: int) -> None:
    if self.at(handle).mig is not None:
        raise NotOffered
    to = pynvml.c_nvmlUtilization_t.from_address(rates)
    to.gpu, to.memory = offered(self.at(handle).utilization), 12


@c(c_void_p, Out(pynvml.c_nvmlTemperature_v1_t))
def nvmlDeviceGetTemperatureV(self: StandIn, handle: int, temperature: int) -> None:
    to = pynvml.c_nvmlTemperature_v1_t.from_address(temperature)
    to.temperature = offered(self.at(handle).celsius)


@c(c_void_p, c_uint, UINT)
def nvmlDeviceGetTemperature(self: StandIn, handle: int, sensor: int, celsius: int) -> None:
    UINT.put(celsius, offered(self.at(handle).celsius))


@c(c_void_p, c_uint, UINT)
def nvmlDeviceGetClockInfo(self: StandIn, handle: int, clock: int, mhz: int) -> None:
    gpu = self.at(handle)
    UINT.put(mhz, {pynvml.NVML_CLOCK_SM: gpu.sm_mhz, pynvml.NVML_CLOCK_MEM: gpu.memory_mhz}[clock])


@c(c_void_p, c_int, Out(pynvml.c_nvmlFieldValue_t))
def nvmlDeviceGetFieldValues(self: StandIn, handle: int, count: int, values: int) -> None:
    gpu = self.at(handle)
    known = {
        pynvml.NVML_FI_DEV_MEMORY_TEMP: (gpu.memory_celsius, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT),
        pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES: (gpu.pcie_bytes, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG),
        pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES: (7, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT),  # 32 bits: it wraps
        pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: (
            gpu.recovery_action,
            pynvml.NVML_VALUE_TYPE_UNSIGNED_INT,
        ),
    }
    nvlink = (gpu.nvlink_kib, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
    for to in (pynvml.c_nvmlFieldValue_t * count).from_address(values):
        linked = to.scopeId == TRANSPARENT
        value, to.valueType = known.get(to.fieldId, nvlink if linked else (None, 0))
        to.nvmlReturn = gpu.field_error if value is None else 0
        to.value.ullVal = 0x5A5A5A5A if value is None else value


@c(c_void_p, c_uint, c_uint, ULL)
def nvmlDeviceGetTotalEccErrors(self: StandIn, handle: int, kind: int, counter: int, count: int) -> None:
    gpu = self.at(handle)
    offered(gpu.ecc or None)
    counts = {
        pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED: gpu.corrected,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED: gpu.uncorrected,
    }
    ULL.put(count, counts[kind][counter == pynvml.NVML_AGGREGATE_ECC])


# --- Processes


def _running(self: StandIn, handle: int, count: int, to: int, *, is_graphics: bool) -> int:
    found = [one for one in self.processes(handle) if one.is_graphics == is_graphics]
    room = c_uint.from_address(count)
    fits, room.value = room.value >= len(found) and to, len(found)
    if not found:
        return 0
    if not fits:
        return pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    for place, one in zip((pynvml.c_nvmlProcessInfo_v2_t * len(found)).from_address(to), found, strict=True):
        place.pid, place.gpuInstanceId, place.computeInstanceId = one.pid, TRANSPARENT, TRANSPARENT
        unknown = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        place.usedGpuMemory = unknown if one.memory_mib is None else one.memory_mib * MIB
    return 0


for kind, is_graphics in (("Compute", False), ("Graphics", True)):
    for version in ("v2", "v3"):
        FUNCTIONS[f"nvmlDeviceGet{kind}RunningProcesses_{version}"] = (
            (c_void_p, UINT, Out(pynvml.c_nvmlProcessInfo_v2_t)),
            partial(_running, is_graphics=is_graphics),
        )


@c(c_void_p, Out(pynvml.c_nvmlProcessUtilizationSample_t), UINT, c_ulonglong)
def nvmlDeviceGetProcessUtilization(self: StandIn, handle: int, to: int, count: int, since: int) -> int:
    if self.at(handle).mig is not None:
        raise NotOffered
    assert since < time.time() * 1_000_000
    found, room = self.processes(handle), c_uint.from_address(count)
    if not to:
        room.value = len(found)
        return pynvml.NVML_ERROR_INSUFFICIENT_SIZE if found else 0
    for place, one in zip(
        (pynvml.c_nvmlProcessUtilizationSample_t * room.value).from_address(to), found, strict=True
    ):
        place.pid, place.timeStamp, place.smUtil = one.pid, since + 1, one.sm_percent
    return 0


# --- Events


@c(HANDLE)
def nvmlEventSetCreate(self: StandIn, events: int) -> None:
    HANDLE.put(events, 0xE000)


@c(c_void_p)
def nvmlEventSetFree(self: StandIn, events: int) -> int:
    return 0


@c(c_void_p, c_ulonglong, c_void_p)
def nvmlDeviceRegisterEvents(self: StandIn, handle: int, types: int, events: int) -> None:
    assert types == pynvml.nvmlEventTypeXidCriticalError


@c(c_void_p, Out(pynvml.c_nvmlEventData_t), c_uint)
def nvmlEventSetWait_v2(self: StandIn, events: int, data: int, milliseconds: int) -> int:
    if not self.xids:
        time.sleep(min(self.wait_seconds, milliseconds / 1000))
        return pynvml.NVML_ERROR_TIMEOUT
    uuid, xid = self.xids.pop(0)
    handle = next((self.handle(gpu) for gpu in self.gpus if gpu.uuid == uuid), 0xF000)
    c_void_p.from_address(data).value = handle
    to = pynvml.c_nvmlEventData_t.from_address(data)
    to.eventType, to.eventData = pynvml.nvmlEventTypeXidCriticalError, xid
    to.gpuInstanceId = to.computeInstanceId = TRANSPARENT
    return 0
