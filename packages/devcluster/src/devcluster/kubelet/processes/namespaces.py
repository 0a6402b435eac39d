"""Mount namespace of devcluster itself: its mounts are visible to nobody else and vanish with it."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
_RUN_MIB = 256


def prepare(state: Path) -> None:
    """Enter a private mount namespace (as root) and lay a memory disk over `run`, where Secrets are written."""
    for part in ("run", "scratch", "roots", "names"):
        shutil.rmtree(state / part, ignore_errors=True)
        (state / part).mkdir(mode=0o700)
    # Pods reach their volumes through bind mounts only; the folders above are closed to all other users.
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "cannot enter a mount namespace")
    run = str(state / "run")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,size={_RUN_MIB}m", "none", run], check=True)
