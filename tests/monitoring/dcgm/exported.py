"""Data of dcgm-exporter in a Prometheus: series from clusters in public issue threads, combined."""

from __future__ import annotations

from collections.abc import Mapping

from monitoring.dcgm.prometheus import Series

NOW = 1_700_000_000.0
EXPORTER = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-78z52", "container": "exporter"}
TARGET = {
    "endpoint": "metrics",
    "instance": "10.0.3.7:9400",
    "job": "dcgm-exporter",
    "service": "dcgm-exporter",
}
UTIL, USED, FREE, RESERVED, ACTIVE, XIDS, XID_COUNT, ECC, UNCORRECTED = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT",
    "DCGM_FI_DEV_ECC_CURRENT", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
)  # fmt: skip
FIRST, SECOND = "GPU-265c9814-6156-355b-e589-ff2064894f16", "GPU-2d20791a-b4a6-ba59-97f1-e95b99fe5b49"


def labels(uuid: str = FIRST, *, host: str = "Hostname", node: str = "gpu-1", **more: str) -> dict[str, str]:
    """Return labels after Prometheus renamed the exporter's pod, namespace and container and set its target's."""
    own = {
        "UUID": uuid,
        "gpu": "0" if uuid == FIRST else "1",
        "pci_bus_id": "00000000:8D:00.0",
        "device": "nvidia0",
        "modelName": "NVIDIA A100-SXM4-80GB",
        host: node,
        "DCGM_FI_DRIVER_VERSION": "550.144.03",
    }
    return {**own, **TARGET, **EXPORTER, **more}


def used_by(
    pod: str, namespace: str = "berth-demo", prefix: str = "exported_", **more: str
) -> dict[str, str]:
    user = {"namespace": namespace, "pod": pod, "container": "main"}
    return {prefix + name: value for name, value in user.items()} | more


def counted(xid: int = 0, *, minutes: int = 5, **more: str) -> dict[str, str]:
    """Return labels of the recent errors of one Xid; without an Xid there were none."""
    number = {"xid": str(xid)} if xid else {}
    return labels(window_size_in_ms=str(minutes * 60_000), **number, **more)


def of(labels: Mapping[str, str], *values: float | str, ago: float = 5, every: float = 15) -> Series:
    """Return a series whose last value is `ago` seconds old."""
    times = [NOW - ago - every * place for place in reversed(range(len(values)))]
    return Series(dict(labels), [(at, float(value)) for at, value in zip(times, values, strict=True)])
