"""Stand-in for libnvidia-ml.so.1 under the real pynvml: C functions made by ctypes, so that pynvml's marshalling runs.

It simulates `gpus`. A function can be set to return an error. It then leaves rubbish in place of its answer, as the
real one may, so that code that reads it all the same is found.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_int, c_void_p
from typing import Any, Protocol

import pynvml

from tests.monitoring.agent.stand_in_calls import FUNCTIONS, Answer, Gpu, Instance, NotOffered, Out, Running

__all__ = ["FIRST", "MIG", "NAMES", "SECOND", "Gpu", "Instance", "Running", "StandIn", "installed"]
RUBBISH = 0x5A
FIRST, SECOND = "GPU-11111111-1111-4111-8111-111111111111", "GPU-22222222-2222-4222-8222-222222222222"
MIG = "MIG-33333333-3333-4333-8333-333333333333"
NAMES = tuple(FUNCTIONS)


class StandIn:
    """Library with functions by name, like a CDLL; a missing name raises AttributeError, as there."""

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = list(gpus)
        self.errors: dict[str, int] = {}
        self.lost: set[str] = set()  # uuids
        self.missing: set[str] = set()  # functions that an older driver does not have
        self.hanging: Callable[[], object] | None = None
        self.xids: list[tuple[str, int]] = []
        self.wait_seconds = 0.002
        self.began = 0
        self.called: list[str] = []
        self.broken: list[BaseException] = []
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS or name in self.missing:
            raise AttributeError(name)
        if name not in self._made:
            types, method = FUNCTIONS[name]
            c_types = [c_void_p if isinstance(kind, Out) else kind for kind in types]
            self._made[name] = ctypes.CFUNCTYPE(c_int, *c_types)(
                lambda *arguments: self._answer(name, method, arguments)
            )
        return self._made[name]

    def _answer(self, name: str, method: Answer, arguments: tuple[Any, ...]) -> int:
        """Answer a call. An exception must not leave it: ctypes would print the exception and return success."""
        try:
            self.called.append(name)
            if self.hanging:
                self.hanging()
            if name.startswith("nvmlDevice") and self._lost(arguments[0]):
                return pynvml.NVML_ERROR_GPU_IS_LOST
            if error := self.errors.get(name):
                # Only "insufficient size" comes with an answer: pynvml allocates as much memory as the answer says.
                if error != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                    self._fill_with_rubbish(FUNCTIONS[name][0], arguments)
                return error
            return method(self, *arguments) or 0
        except NotOffered:
            return pynvml.NVML_ERROR_NOT_SUPPORTED
        except BaseException as error:
            self.broken.append(error)
            return pynvml.NVML_ERROR_UNKNOWN

    def _fill_with_rubbish(self, types: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
        for kind, argument in zip(types, arguments, strict=True):
            if isinstance(kind, Out) and argument:
                ctypes.memset(argument, RUBBISH, ctypes.sizeof(kind.type))

    def _lost(self, handle: int | None) -> bool:
        return any(self.handle(gpu) == handle and gpu.uuid in self.lost for gpu in self.gpus)

    def handle(self, gpu: Gpu) -> int:
        return 0x1000 * (self.gpus.index(gpu) + 1)

    def at(self, handle: int) -> Gpu:
        return self.gpus[handle // 0x1000 - 1]

    def instance(self, handle: int) -> Instance | None:
        place = handle % 0x1000
        return (self.at(handle).mig or [])[place - 1] if place else None

    def processes(self, handle: int) -> list[Running]:
        instance = self.instance(handle)
        return instance.processes if instance else self.at(handle).processes


class Library(Protocol):
    """Library for `installed`. `broken`: its own exceptions, which ctypes would swallow."""

    broken: list[BaseException]


@contextmanager
def installed(library: Library | None) -> Iterator[None]:
    """Simulate that the dynamic linker found this library; None: that it found none."""
    before, linker = pynvml.nvmlLib, pynvml.CDLL
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.nvmlLib, pynvml.CDLL = library, _nothing_found
    try:
        yield
    finally:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib, pynvml.CDLL = before, linker
    if library:
        assert not library.broken, library.broken


def _nothing_found(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file: No such file or directory")
