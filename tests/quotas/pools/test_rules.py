"""Validation of a pool: each fault has its field and a sentence, and what works is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.models import Cluster
from quotas.models import Pool
from quotas.pools.rules import faults

MIG: dict[str, Any] = {"sharing": "mig", "units_per_gpu": 7}
CORES: dict[str, Any] = {"sharing": "gpu-manager", "units_per_gpu": 100, "gpu_memory_mib": 1}
GOOD: list[dict[str, Any]] = [
    {},
    {"resource_name": "amd.com/gpu", "node_labels": {"zone": "a", "amd.com/gpu.family": "MI300"}},
    {"resource_name": "rdma/hca_shared"},
    {"extra_resources": {"rdma/hca": 1, "nvidia.com/hostdev": 8}},
    {"resource_name": ""},
    {"match_product": "NVIDIA-A100-SXM4-80GB", "match_compute_capability": "8.6", "match_ecc": True},
    MIG | {"resource_name": "nvidia.com/mig-1g.10gb"},
    MIG | {"mig_profile": "1g.10gb"},
    {"sharing": "time-slicing", "units_per_gpu": 4, "one_unit_each": True},
    {"sharing": "mps", "units_per_gpu": 4, "resource_name": "nvidia.com/gpu.shared"},
    {"sharing": "hami", "units_per_gpu": 100, "gpu_memory_mib": 40_960},
    CORES | {"resource_name": "tencent.com/vcuda-core"},
    {
        "tolerations": [
            {"key": "gpu", "operator": "Exists"},
            {"operator": "Exists"},
            {"key": "a", "value": "b"},
        ]
    },
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]},
    {"driver_path": "/var/lib/nvidia-docker/volumes/nvidia_driver/410.104", "image_pull_secrets": ["a.b-c"]},
]

BAD: list[tuple[str, dict[str, Any]]] = [
    ("node_labels", {"node_labels": ["zone"]}),
    ("node_labels", {"node_labels": {"zone": True}}),
    ("node_labels", {"node_labels": {"zone of mine": "a"}}),
    ("node_labels", {"node_labels": {"zone": "a b"}}),
    ("match_product", {"match_product": "NVIDIA A100"}),
    ("match_product", {"match_product": "A100", "node_labels": {"nvidia.com/gpu.product": "A100"}}),
    ("match_compute_capability", {"match_compute_capability": "8,6"}),
    ("compute_capability", {"compute_capability": "Ampere"}),
    ("resource_name", {"resource_name": "gpu"}),
    ("resource_name", {"resource_name": "nvidia.com/"}),
    ("mig_profile", MIG | {"mig_profile": "1g.10"}),
    ("mig_profile", {"mig_profile": "1g.10gb"}),
    ("mig_profile", MIG),
    ("mig_profile", MIG | {"resource_name": "nvidia.com/mig-1g.10gb", "mig_profile": "2g.20gb"}),
    ("resource_name", MIG | {"resource_name": "amd.com/gpu"}),
    ("units_per_gpu", {"units_per_gpu": 4}),
    ("units_per_gpu", {"sharing": "time-slicing"}),
    ("units_per_gpu", {"sharing": "mps"}),
    ("units_per_gpu", {"sharing": "hami", "units_per_gpu": 10, "gpu_memory_mib": 1}),
    ("gpu_memory_mib", {"sharing": "hami", "units_per_gpu": 100}),
    ("resource_name", CORES),
    ("one_unit_each", {"one_unit_each": True}),
    ("ecc", {"ecc": True, "match_ecc": False}),
    ("unit_memory_mib", {"unit_memory_mib": 2, "gpu_memory_mib": 1}),
    ("sharing", {"resource_name": "", "sharing": "mig"}),
    ("driver_path", {"resource_name": "", "driver_path": "/opt/nvidia"}),
    ("image_pull_secrets", {"image_pull_secrets": {"name": "registry"}}),
    ("image_pull_secrets", {"image_pull_secrets": ["My Registry"]}),
    ("image_pull_secrets", {"image_pull_secrets": ["a" * 254]}),
    ("runtime_class", {"runtime_class": "NVIDIA runtime"}),
    ("extra_resources", {"extra_resources": ["rdma/hca"]}),
    ("extra_resources", {"extra_resources": {"rdma/hca": 0}}),
    ("extra_resources", {"extra_resources": {"rdma/hca": True}}),
    ("extra_resources", {"extra_resources": {"memory": 1}}),
    ("extra_resources", {"extra_resources": {"nvidia.com/gpu": 1}}),
]
BAD_PATHS = [
    "opt/nvidia", "/opt/../etc/kubernetes", "/opt", "/etc/kubernetes/pki", "/var/lib/kubelet/pods", "/var/lib",
    "/var/lib/containerd",
]  # fmt: skip
BAD_TOLERATIONS: list[Any] = [
    {"key": "gpu"},
    ["gpu"],
    [{"key": 5, "operator": "Exists"}],
    [{"key": "a\nb", "operator": "Exists"}],
    [{"key": "a", "value": {"b": "c"}}],
    [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": "5"}],
    [{"key": "gpu", "operator": "In"}],
    [{"key": "gpu", "effect": "Never"}],
    [{"effect": "NoSchedule"}],
    [{"key": "gpu", "operator": "Exists", "value": "x"}],
    [{"key": "gpu", "tolerationSeconds": 5}],
    [{"name": "gpu"}],
]
BAD += [("driver_path", {"driver_path": path}) for path in BAD_PATHS]
BAD += [("tolerations", {"tolerations": tolerations}) for tolerations in BAD_TOLERATIONS]


@pytest.mark.parametrize("values", GOOD)
def test_what_works_is_let_through(values: dict[str, Any]) -> None:
    assert faults(Pool(cluster=Cluster(), **values)) == {}


@pytest.mark.parametrize(
    ("path", "is_let_in"), [("/opt/nvidia", True), ("/optional/nvidia", False), ("/srv/nvidia", False)]
)
def test_a_drivers_folder_is_one_that_the_clusters_policies_let_in(
    settings: Any, path: str, is_let_in: bool
) -> None:
    settings.DRIVER_FOLDERS = ["/usr", "/opt"]
    inside, outside = Cluster(connection="in-cluster"), Cluster(connection="kubeconfig")
    assert (faults(Pool(cluster=inside, driver_path=path)) == {}) is is_let_in
    assert faults(Pool(cluster=outside, driver_path=path)) == {}


@pytest.mark.parametrize(("field", "values"), BAD)
def test_what_cannot_work_is_said_at_its_field(field: str, values: dict[str, Any]) -> None:
    found = faults(Pool(cluster=Cluster(), **values))
    assert list(found) == [field]
    assert all(text.endswith((".", "}].", '"].')) for text in found[field])
