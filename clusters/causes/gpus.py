"""Causes of GPU faults: NVIDIA's driver and kernel log (Xid), container tools, device plugin, MPS, MIG, CUDA itself.

Meanings of Xids follow NVIDIA's catalogue. An Xid may name an earlier one as its cause ("caused by previous Xid 149"),
so causes in the hardware come before those in programs.
"""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from clusters.causes.cause import Cause


def _xid(*numbers: int) -> str:
    """Return a pattern for the kernel's "Xid (PCI:0000:cb:00): 13, …", the device plugin's "Xid=13" and "XID 13"."""
    return rf"\bXid(?: \(PCI:[^)]*\))?[\s:=]+(?P<xid>{'|'.join(map(str, numbers))})\b"


OF_PROGRAMS = (
    *(8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 60, *range(68, 73), 75, 76, 77, 80, *range(82, 87), 88, 89),
    *(*range(96, 106), 109, *range(126, 136), 137, 139, 141),
)

DRIVER_NOT_LOADED = Cause(
    "gpu_driver_not_loaded",
    r"could not load NVML library|load library failed: libnvidia-ml"
    r"|lib(?:nvidia-ml|cuda)\.so\S*: cannot open shared object"
    r"|driver (?:is )?not loaded|couldn't communicate with the NVIDIA driver|could not insert '?nvidia"
    r"|Module nvidia\S* not found"
    # The driver's folder, as a pool names it (workloads/pods/drivers.py).
    r'|volume "driver\S*\s*:\s*hostPath type check failed',
    _("The node's NVIDIA driver is not loaded, or containers do not find it."),
    _(
        "An admin has to install or load it for the node's kernel, and to make the NVIDIA runtime the node's default "
        "(or to correct the driver's path of the pool). Another node may work."
    ),
    "admin",
)

DRIVER_FAULTS = (
    DRIVER_NOT_LOADED,
    Cause(
        "gpu_software_unfit",
        r"driver version is insufficient|driver on your system is too old|unsatisfied condition: cuda"
        r"|forward compatibility|file creation failed: \S+: file exists|compiled with an unsupported toolchain"
        r"|Cannot dlopen some GPU libraries"
        r"|no kernel image is available for execution|is not compatible with the current PyTorch installation"
        r"|device kernel image is invalid|CUDNN_STATUS_(?:NOT_INITIALIZED|\w*(?:MISMATCH|NOT_SUPPORTED)\w*)"
        r"|Torch not compiled with CUDA|invalid device function|NO_BINARY_FOR_GPU|InsufficientDriver"
        r"|unsupported (?:gpu|PTX)"
        r"|\b(?:CUDA|cuDNN|NVIDIA driver)\b[^\n]{0,60}\b(?:too old|incompatible|not compatible|mismatch"
        r"|does not support|or (?:newer|higher|later))\b"
        r"|\b(?:load|open|find|import)\w*\b[^\n]{0,40}\blib(?:cu[bdfprs]\w+|nccl|nvrtc|nvJitLink|nvinfer)\w*\.so"
        r"|\blib(?:cu[bdfprs]\w+|nccl|nvrtc|nvJitLink|nvinfer)\b\S*: [^\n]{0,40}(?:cannot open shared object"
        r"|undefined symbol|not found)"
        r"|DNN library|\b(?:could not|failed to|unable to|cannot) (?:create|load|init\w*|find|open"
        r"|get) (?:a )?cu(?:dnn|fft|sparse)\b",
        _("The CUDA version or the libraries of your image do not fit this GPU or its driver."),
        _(
            "Choose an image with another CUDA version, or another kind of GPU. An admin can update the driver."
        ),
    ),
    Cause(
        "gpu_driver_mismatch",
        r"Driver/library version mismatch|unsupported display driver / cuda driver combination|NVRM: API mismatch",
        _(
            "The parts of the node's NVIDIA driver are of different versions: it was updated without a restart."
        ),
        _(
            "An admin has to restart the node, or load the driver again. Starting again may pick another node."
        ),
        "admin",
    ),
    Cause(
        "gpu_uvm_missing",
        r"/dev/nvidia-uvm|nvidia-uvm.*(?:no such|not found)|open failed: /dev/nvidia",
        _("The node lacks a device that GPU programs need (/dev/nvidia-uvm)."),
        _("An admin has to load the module nvidia-uvm on that node. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_sharing_failed",
        r"MPS daemon health|waiting for MPS daemon|nvidia-cuda-mps-\w.*(?:exited|failed)|CUDA_ERROR_MPS|cudaErrorMps"
        r"|MPS (?:control )?(?:daemon|server)\b.*(?:failed|exited|not ready)|Server encountered a fatal exception"
        r"|Legacy Server\b.*Failed to start"
        r"|migEnabled=|invalid MIG configuration|No MIG devices associated|has no MIG devices configured"
        r"|More than one MIG device type|getting device memory info: Insufficient P|MIG device allocation failed"
        r"|error creating (?:MIG device|GPU instance)|GPUs could not be reset|using MPS requires"
        r"|libvgpu\.so[^\n]*(?:undefined symbol|cannot be preloaded)|(?:HAMI-core|4pdvGPU) ERROR[^\n]*lock shrreg",
        _("The sharing of GPUs on that node, by MPS, by HAMi or as MIG instances, does not work."),
        _(
            "An admin has to check the node's MPS daemon or HAMi's library, or to divide its GPUs as the "
            "device plugin wants it. Another pool may start now."
        ),
        "admin",
    ),
)

UNHEALTHY = Cause(
    "gpu_unhealthy",
    r"CardNotHealth|CardCordoned|no healthy devices present|cannot allocate unhealthy devices",
    _("The GPUs it could use are unhealthy, or an admin took them out of use."),
    _("It starts when one can be used again; another pool may start now. An admin has to check these GPUs."),
    "admin",
    ngettext_lazy("%(nodes)s GPU is out of use", "%(nodes)s GPUs are out of use", "nodes"),
)

TOO_FEW_TOGETHER = Cause(
    "gpu_too_few_together",
    r"NodeInsufficientDevice|request devices nums cannot exceed|AllocatedCardsInsufficientRequest|NumaNotFit"
    r"|CardMigTopologyInfeasible|CardNotFoundCustomFilterRule|maximum request size for shared resources",
    _("No single node has the requested number of GPUs free."),
    _("Request fewer GPUs. If a node has that many, it starts automatically when enough of them are free."),
    in_short=ngettext_lazy(
        "%(nodes)s has too few GPUs together", "%(nodes)s have too few GPUs together", "nodes"
    ),
)

SHARE_SHORT = Cause(
    "gpu_share_short",
    r"(?P<resource>CardInsufficientMemory|CardInsufficientCore|CardComputeUnitsExhausted|CardTimeSlicingExhausted"
    r"|(?:(?<=insufficient gpu )|(?<=in-sufficient gpu ))memory)"
    r"|ExclusiveDeviceAllocateConflict|NodeUnfitPod|GPU Memory in one device|no-gpu-has-\d+"
    r"|no available node, (?:all node scores|\d+ nodes) do not meet",
    _("No GPU has enough free %(resource)s for this request."),
    _("Starts automatically when a share of a GPU becomes free. A smaller share may start now."),
    in_short=ngettext_lazy(
        "%(nodes)s GPU lacks free %(resource)s", "%(nodes)s GPUs lack free %(resource)s", "nodes"
    ),
)

HARDWARE_FAULTS = (
    Cause(
        "gpu_link_fault",
        rf"{_xid(74, 136, *range(144, 151), 155)}|\bSXid\b[^\n]*, Fatal|uncorrectable NVLink error"
        r"|system not yet initialized|SystemNotReady|SYSTEM_NOT_READY|\b(?:fabric ?manager|NVSwitch"
        r"|NVLink)\b[^\n]{0,80}"
        r"\b(?:fail\w*|error|not (?:running|initialized|ready)|down|inactive)\b",
        _("The links between the node's GPUs do not work."),
        _("A single GPU may work. An admin has to check NVLink and the fabric manager of that node."),
        "admin",
    ),
    Cause(
        "gpu_memory_damaged",
        rf"{_xid(48, 64, 92, 94, 95, 140, 156, 171, 172)}|uncorrectable ECC error|ECC_UNCORRECTABLE"
        r"|row remap\w*[^\n]{0,20} fail",
        _("The GPU's memory has a fault."),
        _(
            "Do not trust the latest results. An admin has to reset or replace that GPU; another one may work."
        ),
        "admin",
    ),
    Cause(
        "gpu_repair_due",
        _xid(63),
        _("The GPU found unreliable memory and will disable it at its next reset."),
        _(
            "You can use the GPU until then. Programs that used this memory were stopped. An admin has to "
            "reset the GPU when nobody uses it."
        ),
        "admin",
    ),
    Cause(
        "gpu_lost",
        rf"GPU is lost|fallen off the bus|Unable to determine the device handle|{_xid(79, 167)}",
        _("A GPU of the node no longer answers."),
        _("An admin has to restart the node or replace the GPU. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_stuck",
        # Xid 154 is also logged when no action is needed any more.
        rf"{_xid(46, 54, 61, 62, 110, 119, 120, 143, 151, 154, 158, 169)}(?![^\n]*recovery action[^\n]* to 0x0\b)"
        r"|RmInitAdapter failed|waiting for RPC (response )?from .*GSP|waiting for GSP\b|GSP RPC timeout"
        r"|HeartbeatTimedOut|GPU requires reset|GPU (?:needs|has) to be reset|GPU reset (?:is )?required",
        _("A GPU of the node hangs and has to be reset."),
        _("An admin has to reset it or to restart the node. Starting again may pick another one."),
        "admin",
    ),
    Cause(
        "gpu_program_fault",
        rf"{_xid(*OF_PROGRAMS)}|CUDA\b[^\n]*\b(illegal memory access|device-side assert"
        r"|unspecified launch failure|misaligned address|illegal instruction)",
        _("A program on the GPU failed."),
        _("Check your program first: the GPU still works. Tell an admin if other programs also fail on it."),
    ),
)

CAUSES = (
    *DRIVER_FAULTS,
    *HARDWARE_FAULTS,
    SHARE_SHORT,
    Cause(
        "gpu_vanished",
        r"Failed to initialize NVML: Unknown Error",
        _(
            "Containers on the node lost their GPUs while they ran, as happens when its services are reloaded."
        ),
        _("Restart your workspace to get a GPU again. An admin can prevent it by using CDI on the nodes."),
    ),
    Cause(
        "gpu_nvml_failed",
        r"Failed to initialize NVML|nvml: |nvidia-container-(?:cli|runtime)|error running (?:prestart )?hook"
        r"|No help topic for '"
        r"|error modifying OCI spec"
        r"|Runtime ?Handler \"?nvidia|nvidia-cdi-hook|nvidia-ctk\b"
        r"|devices\.allow: no such file or directory|unable to (?:generate|create) new device filter program"
        r"|failed to add device rules|no runtime for \"?nvidia|unknown runtime specified:? \"?nvidia"
        r"|unresolvable CDI device|CDI device injection failed|inject CDI device|setting up CDI devices"
        r"|could not select device driver|invalid device discovery strategy|Incompatible strategy detected",
        _("The node's NVIDIA driver and container tools do not work together."),
        _(
            "An admin has to set up or update the NVIDIA container toolkit there, for its container runtime and "
            "control groups. Starting again may pick another node."
        ),
        "admin",
    ),
    UNHEALTHY,
    TOO_FEW_TOGETHER,
    Cause(
        "gpu_out_of_memory",
        r"\bCUDA\w*[^\n]{0,40}\bout ?of ?memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
        r"|CUBLAS_STATUS_ALLOC_FAILED|OOM when allocating tensor|RESOURCE_EXHAUSTED: Out of memory"
        r"|CUBLAS_STATUS_NOT_INITIALIZED|gpu_memory_utilization|OutOfMemoryError: (?:CUDA|GPU|HIP|Allocation)"
        r"|out of memory (?:while )?trying to allocate|(?:GPU|device|video) memory[^\n]{0,40}(?:exhausted"
        r"|insufficient|not enough)"
        r"|(?:insufficient|not enough|no available) (?:GPU |device )?memory[^\n]{0,40}(?:GPU|device|CUDA"
        r"|cache blocks)"
        r"|cuda runtime error \(2\)|Free memory on device[^\n]* is less than desired"
        r"|(?:HAMI-core|4pdvGPU) ERROR.*(?:\bOOM\b|cuMemoryAllocate failed res=2)",
        _("The GPU's memory, or your share of it, was full."),
        _("Use a smaller batch or model, or choose a GPU or a share with more memory."),
    ),
    Cause(
        "gpu_takes_no_program",
        r"CUDA-capable device\S* (?:is/)?are busy or unavailable|cudaErrorDevicesUnavailable"
        r"|CUDA unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|CUDA driver initialization failed"
        r"|CUDA_ERROR_NOT_INITIALIZED|CUDA error: initialization error|CUDA initialization: "
        r"|cudaErrorInitializationError"
        r"|Unexpected error from cudaGetDeviceCount",
        _("There is a GPU, but it accepts no program."),
        _(
            "Restart your workspace. If that does not help, tell an admin: something else holds the GPU, the module "
            "nvidia-uvm is missing on that node, or the GPU has to be reset."
        ),
        "admin",
    ),
    Cause(
        "gpu_none_seen",
        r"no CUDA-capable device is detected|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE|No CUDA GPUs are available"
        r"|Found no NVIDIA driver|nvidia-smi: (?:command )?not found|No devices were found|invalid device ordinal"
        r"|cuda\.is_available\(\) is False|failed call to cuInit|no compatible GPUs were discovered"
        r"|Discovered GPU libraries: \[\]|Could not find cuda drivers|\bno (?:NVIDIA |CUDA |visible "
        r"|usable )?GPUs?\b[^\n]{0,20}"
        r"(?:found|detected|available|visible)|GPUs? (?:is|are|was|were)? ?not (?:found|detected|available|visible)",
        _("The program sees no GPU."),
        _(
            "Check that it was started with a GPU, and CUDA_VISIBLE_DEVICES. If both are right, tell an admin."
        ),
    ),
)

# What CUDA and its libraries call an error that no other rule knows.
ANY_FAULT = replace(
    next(cause for cause in HARDWARE_FAULTS if cause.code == "gpu_program_fault"),
    pattern=r"\bCUDA (?:runtime )?error\b|\bcudaError\w|\bCUDA_ERROR_\w|\bCU(?:DNN|BLAS|SPARSE|FFT|SOLVER)_STATUS_\w"
    r"|\bcuDNN error\b|\bTriton Error \[CUDA\]",
)
