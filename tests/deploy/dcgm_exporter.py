"""Metrics and labels that dcgm-exporter has by default.

Names: `etc/default-counters.csv` of github.com/NVIDIA/dcgm-exporter at d5e5f510 (May 2026). Labels: its
`internal/pkg/rendermetrics`; `Hostname` until May 2026, `hostname` since; pod, namespace and container exist
if it maps GPUs to pods. Prometheus puts `exported_` before labels that the scrape itself sets.
"""

from __future__ import annotations

_COUNTERS = """
    DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_MEM_CLOCK DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_GPU_TEMP
    DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_PCIE_REPLAY_COUNTER
    DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_MEM_COPY_UTIL DCGM_FI_DEV_ENC_UTIL DCGM_FI_DEV_DEC_UTIL
    DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_FB_FREE DCGM_FI_DEV_FB_USED DCGM_FI_DEV_FB_RESERVED
    DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL DCGM_FI_DEV_VGPU_LICENSE_STATUS
    DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS
    DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
    DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_PCIE_RX_BYTES
"""
_LABELS = """
    gpu UUID pci_bus_id device modelName GPU_I_PROFILE GPU_I_ID Hostname hostname pod namespace container
    exported_pod exported_namespace exported_container DCGM_FI_DRIVER_VERSION
"""
COUNTERS = frozenset(_COUNTERS.split())
LABELS = frozenset(_LABELS.split())
