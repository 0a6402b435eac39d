"""NVML's answers on a real machine, written down below pynvml, and played again where there is no GPU.

    python -m tests.monitoring.agent.trace FILE.json

on a node with a driver (busy, if it can be) writes what the library answers to three looks of the agent. A file that is
put into `traces/` is played by test_traces.py from then on: whatever the agent asks, it gets the bytes that the driver
gave. It holds UUIDs, bus addresses and process numbers of that machine, and nothing else of it.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from monitoring.agent.look import Looker
from monitoring.agent.schema import Inventory, Look
from tests.monitoring.agent.stand_in import installed

LOOKS, PAUSE_SECONDS = 3, 2.0
WAITS = "nvmlEventSetWait_v2"  # asked all the time by a thread of its own
Call = tuple[str, list[int | None]]


class Recorder:
    """In the place of the library: passes every call on, and writes down what came back."""

    def __init__(self, library: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self.missing: set[str] = set()
        self.broken: list[BaseException] = []
        self._library = library
        self._writing = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., int]:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            self.missing.add(name)
            raise

        def call(*arguments: Any) -> int:
            asked = [_given(argument) for argument in arguments]
            code = int(function(*arguments))
            told = [bytes(place).hex() for place in map(_place, arguments) if place is not None]
            with self._writing:
                self.calls.append({"name": name, "asked": asked, "code": code, "told": told})
            return code

        return call


class Player:
    """In the place of the library: the answers of a trace, in their order; the last one to whoever asks on."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self._missing = set(trace["missing"])
        self._answers: dict[tuple[str, tuple[int | None, ...]], list[dict[str, Any]]] = defaultdict(list)
        for call in trace["calls"]:
            self._answers[_key(call["name"], call["asked"])].append(call)
        self.broken: list[BaseException] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_") or name in self._missing:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            if name == WAITS:
                time.sleep(0.002)
            answers = self._answers[_key(name, [_given(argument) for argument in arguments])]
            if not answers:  # the agent asks for more than it did when this was recorded
                # The thread that waits may not have come to its first question by then.
                return int(
                    pynvml.NVML_ERROR_TIMEOUT if name == WAITS else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
                )
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            places = [place for place in map(_place, arguments) if place is not None]
            for place, told in zip(places, answer["told"], strict=True):
                content = bytes.fromhex(told)
                ctypes.memmove(ctypes.addressof(place), content, min(len(content), ctypes.sizeof(place)))
            return int(answer["code"])

        return call


def _place(argument: Any) -> Any:
    """Where an answer goes to, if this argument is such a place."""
    if isinstance(argument, ctypes.Array):
        return argument
    return getattr(argument, "_obj", None)  # of byref()


def _given(argument: Any) -> int | None:
    """A number or a handle that was asked with. Moments are left out: they are others each time."""
    if _place(argument) is not None or isinstance(argument, ctypes.c_ulonglong):
        return None
    if isinstance(argument, ctypes._Pointer):
        return ctypes.cast(argument, ctypes.c_void_p).value
    return int(getattr(argument, "value", argument) or 0)


def _key(name: str, asked: list[int | None]) -> tuple[str, tuple[int | None, ...]]:
    return name, tuple(asked)


def looks(folder: Path, count: int, pause_seconds: float) -> list[tuple[Look, Inventory | None]]:
    looker = Looker(dev=folder, proc=folder, kubelet=folder / "none", pod="", on_xid=lambda: None)
    seen = []
    for number in range(count):
        time.sleep(pause_seconds if number else 0)
        seen.append((looker.look(), looker.inventory))
    looker.close()
    return seen


def record(library: Any, folder: Path, pause_seconds: float) -> tuple[dict[str, Any], list[Any]]:
    """The trace, and what the agent made of the answers when they came."""
    recorder = Recorder(library)
    with installed(recorder):
        seen = looks(folder, LOOKS, pause_seconds)
    return {"missing": sorted(recorder.missing), "calls": recorder.calls}, seen


if __name__ == "__main__":
    written, reports = record(ctypes.CDLL("libnvidia-ml.so.1"), Path("/proc"), PAUSE_SECONDS)
    Path(sys.argv[1]).write_text(json.dumps(written))
    json.dump(reports, sys.stdout, indent=2)
