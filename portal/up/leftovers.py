"""Find and end what an earlier `make up` left running, without ever touching a process that is not ours.

A pid alone proves nothing, because pids are reused. A process is ours if its pid *and* its start time are
the recorded ones, or if its environment says that it is a part of this state directory (a child of a killed
part).
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PART_VARIABLE = "BERTH_PART"


@dataclass(frozen=True)
class Process:
    pid: int
    started: int  # clock ticks since boot


def process(pid: int) -> Process | None:
    """The process that has this pid now; None when there is none, or only its zombie."""
    try:
        # The name, in brackets, may hold spaces and brackets itself: fields are counted from the last one.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else Process(pid, int(fields[19]))


def record(records: Path, part: str) -> None:
    """Record the caller as this part's process; it then becomes the program."""
    me = process(os.getpid())
    assert me is not None
    new = records / f".{part}.new"
    new.write_text(f"{me.pid} {me.started}\n")
    new.replace(records / part)


def recorded(records: Path, part: str) -> Process | None:
    """The process of this part, if it is still the one that was recorded."""
    try:
        pid, started = map(int, (records / part).read_text().split())
    except (FileNotFoundError, ValueError):
        return None
    return now if (now := process(pid)) == Process(pid, started) else None


def marked(state_folder: Path, part: str) -> Iterator[Process]:
    """Processes whose environment says that they are this part of this state directory."""
    marks = {f"{PART_VARIABLE}={part}".encode(), b"BERTH_STATE_DIR=" + os.fsencode(state_folder)}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if marks <= set(Path(entry.path, "environ").read_bytes().split(b"\0")):
                    found = process(int(entry.name))
                    if found is not None:
                        yield found


def left(state_folder: Path, records: Path, parts: Iterable[str]) -> set[Process]:
    """Processes of these parts that still run, except the caller."""
    found = set[Process]()
    for part in parts:
        if (leader := recorded(records, part)) is not None:
            found.add(leader)
        found.update(marked(state_folder, part))
    return {process for process in found if process.pid != os.getpid()}


def end(processes: Iterable[Process], how: signal.Signals, patience_seconds: float) -> set[Process]:
    """Signal the processes, wait for their end, and return those that still run."""
    alive = set(processes)
    for one in alive:
        if process(one.pid) == one:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, how)
    deadline = time.monotonic() + patience_seconds
    while True:
        alive = {one for one in alive if process(one.pid) == one}
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.05)
