"""Parts of the stand-in for NVML: simulated GPUs, and the registry of its C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass, field
from typing import Any

import pynvml

MIB = 1 << 20
TRANSPARENT = 0xFFFFFFFF
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
