"""Objects that Berth asks Kubernetes for, per way of sharing a GPU, as files to be read and compared to the letter.

After an intended change, `python -m tests.workspaces.cluster.write_golden` writes them again.
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from clusters.models import Cluster
from quotas import sharing
from quotas.models import Pool, Sharing
from tests.workspaces.builders import wanted, workspace
from workspaces.cluster import manifests

FOLDER = Path(__file__).parent / "golden"
PRODUCT = "NVIDIA-A100-SXM4-80GB"

# Values: the pool, the number of GPUs, and GPU memory in MiB.
CASES: dict[str, tuple[dict[str, Any], Fraction | None, int | None]] = {
    "exclusive": ({}, Fraction(2), None),
    "mig-mixed": (
        {"sharing": Sharing.MIG, "resource_name": "nvidia.com/mig-1g.10gb", "units_per_gpu": 7,
         "unit_memory_mib": 9728, "mig_profile": "1g.10gb"},
        None, None,
    ),
    "mig-single": (
        {"sharing": Sharing.MIG, "units_per_gpu": 2, "unit_memory_mib": 40_448, "mig_profile": "3g.40gb",
         "node_labels": {"nvidia.com/gpu.product": f"{PRODUCT}-MIG-3g.40gb"}},
        Fraction(1, 2), None,
    ),
    "time-slicing": (
        {"sharing": Sharing.TIME_SLICING, "resource_name": "nvidia.com/gpu.shared", "units_per_gpu": 4},
        Fraction(1, 4), None,
    ),
    "mps": (
        {"sharing": Sharing.MPS, "units_per_gpu": 10, "unit_memory_mib": 8192,
         "node_labels": {"nvidia.com/gpu.product": f"{PRODUCT}-SHARED"}},
        Fraction(3, 10), None,
    ),
    "hami": ({"sharing": Sharing.HAMI, "units_per_gpu": 100}, Fraction(1, 2), 20_480),
    "hami-two-cards": ({"sharing": Sharing.HAMI, "units_per_gpu": 100}, Fraction(3, 2), None),
    "gpu-manager": (
        {"sharing": Sharing.GPU_MANAGER, "resource_name": "tencent.com/vcuda-core", "units_per_gpu": 100},
        Fraction(3, 10), None,
    ),
    "gpu-manager-whole": (
        {"sharing": Sharing.GPU_MANAGER, "resource_name": "tencent.com/vcuda-core", "units_per_gpu": 100},
        Fraction(2), None,
    ),
    "amd": (
        {"resource_name": "amd.com/gpu", "node_labels": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}},
        Fraction(1), None,
    ),
    "none": ({"resource_name": "", "node_labels": {}}, None, None),
}  # fmt: skip


def manifest(name: str) -> str:
    """The pod of a workspace in such a pool."""
    changes, gpus, memory_mib = CASES[name]
    values: dict[str, Any] = {
        "slug": "pool",
        "name": "Pool",
        "cluster": Cluster(slug="main", name="Main"),
        "node_labels": {"nvidia.com/gpu.product": PRODUCT},
        "gpu_memory_mib": 81_920,
    }
    pool = Pool(**(values | changes))
    portion = sharing.of(pool).portion(pool, gpus, memory_mib)
    row = workspace(pool=pool, env={}, **asdict(portion))
    return yaml.safe_dump(manifests.pod(wanted(row)), sort_keys=True, width=110)


def path(name: str) -> Path:
    return FOLDER / f"{name}.yaml"
