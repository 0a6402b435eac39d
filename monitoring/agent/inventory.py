"""Facts about this node's GPUs, read when NVML begins and every minute, because MIG layouts change."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import pynvml

from .nvml import Failed, Handle, NotOffered, ask, read
from .schema import GpuFacts, Inventory, MigFacts, Trouble

MIB = 1 << 20


class Device(NamedTuple):
    """GPU with its handles, valid for this session of NVML."""

    uuid: str
    handle: Handle
    mig: list[tuple[str, Handle]]


def take() -> tuple[Inventory, list[Device], dict[int, Trouble]]:
    """Return facts, devices, and problems by index: a GPU without a UUID (off the bus) must not hide the others."""
    facts: list[GpuFacts] = []
    devices: list[Device] = []
    unnamed: dict[int, Trouble] = {}
    for index in range(ask(pynvml.nvmlDeviceGetCount)):
        try:
            handle = ask(pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = ask(pynvml.nvmlDeviceGetUUID, handle)
        except (Failed, NotOffered) as why:
            unnamed[index] = {"code": "gpu_unreadable", "detail": f"GPU {index}: {why}"}
            continue
        mig = list(_mig_devices(handle))
        devices.append(Device(uuid, handle, [(entry["uuid"], handle) for entry, handle in mig]))
        facts.append(_gpu(index, uuid, handle, [entry for entry, _ in mig]))
    versions, _ = read((driver_version, cuda_version), None)
    return cast(Inventory, versions | {"gpus": facts}), devices, unnamed


def _gpu(index: int, uuid: str, handle: Handle, mig: list[MigFacts]) -> GpuFacts:
    values, _ = read((name, memory, ecc, compute_capability, mig_mode, pci_bus, power_limit), handle)
    return cast(GpuFacts, {"index": index, "uuid": uuid, "mig_devices": mig} | values)


def _mig_devices(parent: Handle) -> list[tuple[MigFacts, Handle]]:
    found: list[tuple[MigFacts, Handle]] = []
    try:
        count = ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, parent)
    except (Failed, NotOffered):
        return found
    for index in range(count):
        try:
            handle = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, index)
            uuid = ask(pynvml.nvmlDeviceGetUUID, handle)
        except (Failed, NotOffered):  # an empty slot for an instance answers "not found"
            continue
        values, _ = read((name, memory, gpu_instance, compute_instance), handle)
        found.append((cast(MigFacts, {"uuid": uuid} | values), handle))
    return found


def driver_version(_: Handle) -> dict[str, Any]:
    return {"driver_version": ask(pynvml.nvmlSystemGetDriverVersion)}


def cuda_version(_: Handle) -> dict[str, Any]:
    """Return 12.4 for NVML's 12040."""
    number = ask(pynvml.nvmlSystemGetCudaDriverVersion_v2)
    return {"cuda_version": f"{number // 1000}.{number % 1000 // 10}"}


def name(handle: Handle) -> dict[str, Any]:
    return {"name": ask(pynvml.nvmlDeviceGetName, handle)}


def memory(handle: Handle) -> dict[str, Any]:
    return {"memory_mib": ask(pynvml.nvmlDeviceGetMemoryInfo, handle).total // MIB}


def ecc(handle: Handle) -> dict[str, Any]:
    current, pending = ask(pynvml.nvmlDeviceGetEccMode, handle)
    return {"ecc": bool(current), "ecc_after_reset": bool(pending)}


def compute_capability(handle: Handle) -> dict[str, Any]:
    major, minor = ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return {"compute_capability": f"{major}.{minor}"}


def mig_mode(handle: Handle) -> dict[str, Any]:
    return {"mig": bool(ask(pynvml.nvmlDeviceGetMigMode, handle)[0])}


def pci_bus(handle: Handle) -> dict[str, Any]:
    # pynvml decodes a structure's text when the attribute is read.
    address: str = ask(lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId)
    return {"pci_bus": address.lower()}


def power_limit(handle: Handle) -> dict[str, Any]:
    return {"power_limit_watts": ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle) / 1000}


def gpu_instance(handle: Handle) -> dict[str, Any]:
    return {"gpu_instance": ask(pynvml.nvmlDeviceGetGpuInstanceId, handle)}


def compute_instance(handle: Handle) -> dict[str, Any]:
    return {"compute_instance": ask(pynvml.nvmlDeviceGetComputeInstanceId, handle)}
