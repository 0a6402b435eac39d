"""Known causes of missing GPU data, derived from NVML's error and the device files.

| code | what it means |
| --- | --- |
| `library_missing` | there is no libnvidia-ml.so.1: no driver on the node, or this container did not get it |
| `driver_not_loaded` | the kernel modules are not loaded |
| `version_mismatch` | the driver was updated; the old modules are still loaded, or this container has the old library |
| `device_files_missing` | the driver is loaded, but this container has no /dev/nvidiactl |
| `devices_denied` | the container lost its devices while it ran, as all others on the node did: a daemon reload |
| `uvm_missing` | there is no /dev/nvidia-uvm: GPUs are seen, but no CUDA program starts |
| `no_permission` | NVML refuses this user |
| `gpu_lost` | a GPU fell off the bus, and so NVML does not begin |
| `nvml_failed` | NVML does not begin, and none of the above explains it; the detail names its error |
| `nvml_hangs` | a call to the driver does not return |
| `gpu_unreadable` | one GPU does not even return its UUID; the detail names the GPU |
| `no_gpus` | NVML works and counts no GPU |
| `xids_unwatched` | the driver does not report errors as they happen |
| `agent_failed` | a look failed inside the agent; the detail and the agent's log have the error |
| `kubelet_silent` | the kubelet does not report which container has which GPU |
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from .nvml import Unanswered
from .schema import Trouble

_CODES = {
    "library_not_found": "library_missing",
    "lib_rm_version_mismatch": "version_mismatch",
    "gpu_is_lost": "gpu_lost",
    "driver_not_loaded": "driver_not_loaded",
    "no_permission": "no_permission",
}
_LESS_CERTAIN = {"driver_not_loaded", "no_permission", "nvml_failed"}  # also caused by denied devices
_LOADED = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]+)")


def why_not(answer: Unanswered, dev: Path, proc: Path) -> Trouble:
    """Return the cause for which NVML did not begin, or ended."""
    loaded = loaded_driver(proc)
    control = _opening(dev / "nvidiactl")
    code = _CODES.get(answer.error, "nvml_failed")
    if code in _LESS_CERTAIN and control == errno.EPERM:
        code = "devices_denied"
    elif code == "driver_not_loaded" and loaded and control == errno.ENOENT:
        code = "device_files_missing"
    return {"code": code, "detail": f"{answer.error}; driver {loaded or 'not loaded'}"}


def missing_devices(dev: Path) -> list[Trouble]:
    """Find problems with device files while NVML works: NVML keeps its open files, but new programs would fail."""
    if _opening(dev / "nvidiactl") == errno.EPERM:
        return [{"code": "devices_denied", "detail": str(dev / "nvidiactl")}]
    if not (dev / "nvidia-uvm").exists():
        return [{"code": "uvm_missing", "detail": str(dev / "nvidia-uvm")}]
    return []


def loaded_driver(proc: Path) -> str:
    try:
        version = (proc / "driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return ""
    found = _LOADED.search(version)
    return found[1] if found else "of an unknown version"


def _opening(path: Path) -> int:
    """Return the errno of opening a device file, 0 on success. A cgroup denies with EPERM, file modes with EACCES."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return error.errno or 0
    return 0
