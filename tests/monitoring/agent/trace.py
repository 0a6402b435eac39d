"""Record and replay NVML's answers of a real machine, below pynvml, for tests without a GPU.

    python -m tests.monitoring.agent.trace FILE.json

on a node with a driver (busy, if possible) writes the library's answers to three looks of the agent. test_traces.py
replays each file in `traces/`: whatever the agent asks, it gets the bytes that the driver returned. A file contains
UUIDs, bus addresses and process numbers of its machine, and nothing else of it.
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
WAITS = "nvmlEventSetWait_v2"  # called all the time by its own thread
Call = tuple[str, list[int | None]]


class Recorder:
    """Proxy of the library: it passes calls on, and records the answers."""

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


class Replay:
    """Substitute for the library: it returns the answers of a trace in order, and repeats the last one."""

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
            if not answers:  # the agent asks for more than at the time of the recording
                # The waiting thread may not have made its first call during the recording.
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
    """Return where an answer is written, if the argument is such a place; None otherwise."""
    if isinstance(argument, ctypes.Array):
        return argument
    return getattr(argument, "_obj", None)  # of byref()


def _given(argument: Any) -> int | None:
    """Return a number or handle among the arguments. Times are None, as they differ in each recording."""
    if _place(argument) is not None or isinstance(argument, ctypes.c_ulonglong):
        return None
    if isinstance(argument, ctypes._Pointer):
        return ctypes.cast(argument, ctypes.c_void_p).value
    return int(getattr(argument, "value", argument) or 0)


def _key(name: str, asked: list[int | None]) -> tuple[str, tuple[int | None, ...]]:
    return name, tuple(asked)


def looks(folder: Path, count: int, pause_seconds: float) -> list[tuple[Look, Inventory | None]]:
    looker = Looker(folder, folder, folder / "none")
    seen = []
    for number in range(count):
        time.sleep(pause_seconds if number else 0)
        seen.append((looker.look(), looker.inventory))
    looker.close()
    return seen


def record(library: Any, folder: Path, pause_seconds: float) -> tuple[dict[str, Any], list[Any]]:
    """Return the trace, and the looks that the agent made of the answers."""
    recorder = Recorder(library)
    with installed(recorder):
        seen = looks(folder, LOOKS, pause_seconds)
    return {"missing": sorted(recorder.missing), "calls": recorder.calls}, seen


if __name__ == "__main__":
    written, reports = record(ctypes.CDLL("libnvidia-ml.so.1"), Path("/proc"), PAUSE_SECONDS)
    Path(sys.argv[1]).write_text(json.dumps(written))
    json.dump(reports, sys.stdout, indent=2)
