"""Become one part of a trial: `python -m portal.up.child PART -- COMMAND…` under supervisor.

Supervisor restarts a part that was killed, but does not know the children that it left behind (a task queue's
workers survive their master). So the new process ends them first, records itself, asks the kernel to stop it
when supervisor itself is killed, and becomes the program.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

from portal.up import leftovers
from portal.up.state import State

PR_SET_PDEATHSIG = 1


def main() -> None:
    part, separator, *command = sys.argv[1:]
    assert separator == "--", "usage: python -m portal.up.child PART -- COMMAND…"
    state = State(Path(os.environ["BERTH_STATE_DIR"]))
    leftovers.end(leftovers.left(state.folder, state.records, [part]), signal.SIGKILL, 5)
    with contextlib.suppress(OSError):  # a full disk; the environment identifies this process too
        leftovers.record(state.records, part)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    os.execvp(command[0], command)  # noqa: S606  (no shell is what we want)


if __name__ == "__main__":
    main()
