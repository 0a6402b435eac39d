"""Why a GPU does not work: NVIDIA's driver and kernel log (Xid), container tools, device plugin, MPS, MIG, CUDA itself.

Which Xid means what follows NVIDIA's catalogue; a consequence names what was first ("caused by previous Xid 149"),
so those of the hardware come before those of programs.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause


def _xid(*numbers: int) -> str:
    """The kernel's "Xid (PCI:0000:cb:00): 13, …", the device plugin's "Xid=13", and "XID 13" of others."""
    return rf"\bXid(?: \(PCI:[^)]*\))?[\s:=]+(?P<xid>{'|'.join(map(str, numbers))})\b"


DRIVER_FAULTS = (
    Cause(
        "gpu_driver_library_missing",
        r"could not load NVML library|load library failed: libnvidia-ml|libnvidia-ml\.so\S*: cannot open shared object",
        _("The node's NVIDIA driver cannot be found by containers."),
        _("An admin has to install the driver there, or make the NVIDIA runtime the node's default."),
        "admin",
    ),
    Cause(
        "gpu_driver_mismatch",
        r"Driver/library version mismatch|driver version is insufficient|unsatisfied condition: cuda"
        r"|forward compatibility|unsupported display driver / cuda driver combination|NVRM: API mismatch",
        _(
            "The node's NVIDIA driver does not fit: it was updated without a restart, or is too old for the image."
        ),
        _("Choose an image for an older CUDA version, or ask an admin to restart or update the node."),
        "admin",
    ),
    Cause(
        "gpu_driver_not_loaded",
        r"driver (is )?not loaded|couldn't communicate with the NVIDIA driver|could not insert '?nvidia",
        _("The node's NVIDIA driver is not loaded."),
        _("An admin has to load it, or install it anew for the node's kernel. Another node may work."),
        "admin",
    ),
    Cause(
        "gpu_cgroup_mismatch",
        r"devices\.allow: no such file or directory|unable to (generate|create) new device filter program"
        r"|failed to add device rules",
        _("The node's NVIDIA container tools do not fit its control groups."),
        _("An admin has to update the NVIDIA container toolkit on that node."),
        "admin",
    ),
    Cause(
        "gpu_runtime_missing",
        r"no runtime for \"?nvidia|unknown runtime specified:? \"?nvidia|unresolvable CDI device"
        r"|CDI device injection failed|inject CDI device",
        _("The node's container runtime is not set up to hand out its GPUs."),
        _("An admin has to set up the NVIDIA container toolkit on that node. Another node may work."),
        "admin",
    ),
    Cause(
        "gpu_uvm_missing",
        r"/dev/nvidia-uvm|nvidia-uvm.*(no such|not found)|open failed: /dev/nvidia",
        _("The node lacks a device that GPU programs need (/dev/nvidia-uvm)."),
        _("An admin has to load the module nvidia-uvm on that node."),
        "admin",
    ),
)

SHARING_FAULTS = (
    Cause(
        "gpu_mps_failed",
        r"MPS daemon health|waiting for MPS daemon|nvidia-cuda-mps-\w+.*(exited|failed)|CUDA_ERROR_MPS|cudaErrorMps"
        r"|MPS (control )?(daemon|server)\b.*(failed|exited|not ready)|Server encountered a fatal exception"
        r"|Legacy Server\b.*Failed to start",
        _("The sharing of GPUs by MPS does not work on that node."),
        _("An admin has to look at the node's MPS daemon. Starting again may pick another node."),
        "admin",
    ),
    Cause(
        "gpu_mig_misconfigured",
        r"migEnabled=|invalid MIG configuration|No MIG devices associated|has no MIG devices configured"
        r"|More than one MIG device type|getting device memory info: Insufficient P",
        _("The division of GPUs into MIG instances on that node does not fit its device plugin."),
        _(
            "An admin has to divide the GPUs as the device plugin's strategy wants. Another pool may start now."
        ),
        "admin",
    ),
)

HARDWARE_FAULTS = (
    Cause(
        "gpu_link_fault",
        rf"{_xid(74, 144, 145, 146, 147, 148, 149, 150)}|uncorrectable NVLink error|system not yet initialized",
        _("The links between the node's GPUs do not work."),
        _("A single GPU may work. An admin has to look at NVLink and the fabric manager of that node."),
        "admin",
    ),
    Cause(
        "gpu_memory_damaged",
        rf"{_xid(48, 63, 64, 92, 94, 95, 140, 171, 172)}|uncorrectable ECC error|ECC_UNCORRECTABLE"
        r"|row remap\w* fail",
        _("The GPU's memory has a fault."),
        _(
            "Do not trust what was computed last. An admin has to reset or replace that GPU; another one may work."
        ),
        "admin",
    ),
    Cause(
        "gpu_lost",
        rf"GPU is lost|fallen off the bus|Unable to determine the device handle|{_xid(79)}",
        _("A GPU of the node no longer answers."),
        _("An admin has to restart the node or replace the GPU. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_stuck",
        # Xid 154 also tells when nothing is to be done any more.
        rf"{_xid(61, 62, 119, 120, 143, 154)}(?![^\n]*recovery action[^\n]* to 0x0\b)"
        r"|RmInitAdapter failed|waiting for RPC (response )?from .*GSP",
        _("A GPU of the node hangs and has to be reset."),
        _("An admin has to reset it or to restart the node. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_program_fault",
        rf"{_xid(8, 13, 31, 32, 43, 45, 68, 69, 109, 137)}|CUDA\b[^\n]*\b(illegal memory access|device-side assert"
        r"|unspecified launch failure|misaligned address|illegal instruction)",
        _("A program on the GPU failed and was ended by the driver."),
        _(
            "Look for the fault in the program first: the GPU goes on. Tell an admin if other programs fail on it, too."
        ),
    ),
)

CAUSES = (
    *DRIVER_FAULTS,
    *SHARING_FAULTS,
    *HARDWARE_FAULTS,
    Cause(
        "gpu_vanished",
        r"Failed to initialize NVML: Unknown Error",
        _("The container lost its GPU while it ran, as happens when the node's services are reloaded."),
        _("Restart it to get a GPU again. An admin can prevent it by using CDI on the nodes."),
    ),
    Cause(
        "gpu_nvml_failed",
        r"Failed to initialize NVML|nvml: |nvidia-container-cli",
        _("The node's NVIDIA driver or container tools do not work."),
        _("An admin has to look at that node. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_none_healthy",
        r"no healthy devices present|cannot allocate unhealthy devices (?P<resource>\S*[^\s,])",
        _("The node has no healthy GPU left to hand out."),
        _("It is placed anew. An admin has to look at the GPUs of that node."),
        "admin",
    ),
    Cause(
        "gpu_not_handed_out",
        r"UnexpectedAdmissionError|\bAllocate failed|requested number of devices unavailable"
        r"|Update plugin resources failed",
        _("The node could not hand out the GPU that it had promised."),
        _(
            "It is placed anew by itself. Tell an admin if it happens again: the device plugin may need a restart."
        ),
        "admin",
    ),
    Cause(
        "gpu_out_of_memory",
        r"\bCUDA\b[^\n]{0,40}\bout of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
        r"|HAMI-core ERROR.*(\bOOM\b|cuMemoryAllocate failed res=2)",
        _("The GPU's memory was full."),
        _("Use a smaller batch or model, or choose a GPU with more memory."),
    ),
    Cause(
        "gpu_kind_unsupported",
        r"no kernel image is available for execution|is not compatible with the current PyTorch installation",
        _("The program's libraries were not built for this kind of GPU."),
        _("Choose another image or newer libraries, or another kind of GPU."),
    ),
    Cause(
        "gpu_busy",
        r"CUDA-capable device\S* (is/)?are busy or unavailable|cudaErrorDevicesUnavailable",
        _("The GPU takes no program at the moment."),
        _(
            "Restart it. If that does not help, tell an admin: another program holds the GPU, or it has to be reset."
        ),
        "admin",
    ),
    Cause(
        "gpu_none_seen",
        r"no CUDA-capable device is detected|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE|No CUDA GPUs are available"
        r"|Found no NVIDIA driver",
        _("The program sees no GPU."),
        _(
            "Check that it was started with a GPU, and CUDA_VISIBLE_DEVICES. If both are right, tell an admin."
        ),
    ),
    Cause(
        "gpu_cuda_not_started",
        r"CUDA unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|CUDA driver initialization failed"
        r"|CUDA_ERROR_NOT_INITIALIZED",
        _("CUDA does not start, though there is a GPU."),
        _(
            "Restart it. If that does not help, tell an admin: the module nvidia-uvm may be missing on that node."
        ),
        "admin",
    ),
)
