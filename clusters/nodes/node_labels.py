"""Labels that describe a node's GPUs, as GPU Feature Discovery sets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PRODUCT = "nvidia.com/gpu.product"
MEMORY_MIB = "nvidia.com/gpu.memory"
COUNT = "nvidia.com/gpu.count"
REPLICAS = "nvidia.com/gpu.replicas"
STRATEGY = "nvidia.com/gpu.sharing-strategy"
MAJOR, MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"


def driver_of(labels: Mapping[str, str]) -> str:
    """Return the version of the node's NVIDIA driver, as 550.54.15; "" if the labels say none."""
    return version_of(labels, "driver", ("major", "minor", "rev"))


def version_of(labels: Mapping[str, str], what: str, parts: Sequence[str]) -> str:
    """Return a version by the labels: newer ones hold it whole, older ones in parts."""
    told = (labels.get(f"nvidia.com/cuda.{what}.{part}", "") for part in parts)
    return labels.get(f"nvidia.com/cuda.{what}-version.full", "") or ".".join(filter(None, told))
