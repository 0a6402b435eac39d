"""Nodes' announcements of GPUs for each way of sharing, by the names of GPU Feature Discovery and the plugins."""

import json
from pathlib import Path

import pytest

from devcluster import gpus
from devcluster.testing.cluster import DevCluster, pod
from devcluster.testing.kube import Obj

A100 = "{product: NVIDIA A100-SXM4-80GB, memory_mib: 81920, compute: '8.0', family: ampere, count: 2"
NODES = f"""
nodes:
  - {{name: exclusive, gpus: {A100}}}}}
  - {{name: slicing, gpus: {A100}, sharing: time-slicing, replicas: 4}}}}
  - {{name: renamed, gpus: {A100}, sharing: time-slicing, replicas: 4, rename: true}}}}
  - {{name: mps, gpus: {A100}, sharing: mps, replicas: 10}}}}
  - {{name: mixed, gpus: {A100}, sharing: mig, profile: 1g.10gb, instances: 7}}}}
  - {{name: single, gpus: {A100}, sharing: mig, profile: 3g.40gb, instances: 2, strategy: single}}}}
  - {{name: hami, gpus: {A100}, sharing: hami}}}}
  - {{name: tencent, gpus: {A100}, sharing: gpu-manager}}}}
played: {{start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}}
"""


@pytest.fixture(scope="module")
def nodes(cluster: DevCluster) -> dict[str, Obj]:
    return {node["metadata"]["name"]: node for node in cluster.get("/api/v1/nodes")["items"]}


def labels(node: Obj) -> dict[str, str]:
    return dict(node["metadata"]["labels"])


def devices(node: Obj) -> dict[str, str]:
    return {name: amount for name, amount in node["status"]["allocatable"].items() if "." in name}


def test_every_node_with_gpus_has_the_labels_of_feature_discovery(nodes: dict[str, Obj]) -> None:
    expected = {
        *(
            f"nvidia.com/gpu.{name}"
            for name in ("product", "memory", "count", "replicas", "family", "machine")
        ),
        *(
            f"nvidia.com/gpu.{name}"
            for name in ("sharing-strategy", "mode", "compute.major", "compute.minor")
        ),
        *(f"nvidia.com/cuda.driver-version.{name}" for name in ("major", "minor", "revision", "full")),
        *(f"nvidia.com/cuda.runtime-version.{name}" for name in ("major", "minor", "full")),
        *(f"nvidia.com/{name}" for name in ("gfd.timestamp", "mig.capable", "mig.strategy")),
        *(f"nvidia.com/{name}" for name in ("mps.capable", "vgpu.present")),
    }
    for node in nodes.values():
        assert expected <= set(labels(node))
        assert all(isinstance(value, str) for value in labels(node).values())


def test_there_is_no_label_for_ecc(nodes: dict[str, Obj]) -> None:
    assert not [key for node in nodes.values() for key in labels(node) if "ecc" in key.lower()]


def test_whole_cards(nodes: dict[str, Obj]) -> None:
    found = labels(nodes["exclusive"])
    assert devices(nodes["exclusive"]) == {"nvidia.com/gpu": "2"}
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert (found["nvidia.com/gpu.memory"], found["nvidia.com/gpu.count"]) == ("81920", "2")
    assert (found["nvidia.com/gpu.compute.major"], found["nvidia.com/gpu.compute.minor"]) == ("8", "0")
    assert (found["nvidia.com/gpu.replicas"], found["nvidia.com/gpu.sharing-strategy"]) == ("1", "none")


@pytest.mark.parametrize(
    ("node", "resource", "amount", "strategy", "replicas", "product"),
    [
        ("slicing", "nvidia.com/gpu", "8", "time-slicing", "4", "NVIDIA-A100-SXM4-80GB-SHARED"),
        ("renamed", "nvidia.com/gpu.shared", "8", "time-slicing", "4", "NVIDIA-A100-SXM4-80GB"),
        ("mps", "nvidia.com/gpu", "20", "mps", "10", "NVIDIA-A100-SXM4-80GB-SHARED"),
    ],
)
def test_shared_cards_are_marked_unless_their_resource_is(
    nodes: dict[str, Obj], node: str, resource: str, amount: str, strategy: str, replicas: str, product: str
) -> None:
    found = labels(nodes[node])
    assert devices(nodes[node]) == {resource: amount}
    assert found["nvidia.com/gpu.sharing-strategy"] == strategy
    assert found["nvidia.com/gpu.replicas"] == replicas
    assert found["nvidia.com/gpu.product"] == product
    assert found["nvidia.com/gpu.count"] == "2"
    assert found["nvidia.com/mps.capable"] == ("true" if strategy == "mps" else "false")


def test_mig_mixed_names_each_profile_beside_the_cards(nodes: dict[str, Obj]) -> None:
    found = labels(nodes["mixed"])
    assert devices(nodes["mixed"]) == {"nvidia.com/mig-1g.10gb": "14"}
    assert found["nvidia.com/mig.strategy"] == "mixed"
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert (found["nvidia.com/gpu.memory"], found["nvidia.com/gpu.replicas"]) == ("81920", "0")
    own = {k.removeprefix("nvidia.com/mig-1g.10gb."): v for k, v in found.items() if "mig-1g" in k}
    assert own == {
        "count": "14",
        "product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "memory": "9728",
        "multiprocessors": "14",
        "replicas": "1",
        "sharing-strategy": "none",
        "slices.gi": "1",
        "slices.ci": "1",
        "engines.copy": "1",
        "engines.decoder": "0",
        "engines.encoder": "0",
        "engines.jpeg": "0",
        "engines.ofa": "0",
    }


def test_mig_single_lets_the_instances_stand_for_cards(nodes: dict[str, Obj]) -> None:
    found = labels(nodes["single"])
    assert devices(nodes["single"]) == {"nvidia.com/gpu": "4"}
    assert found["nvidia.com/mig.strategy"] == "single"
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.replicas"]) == ("4", "1")
    assert (found["nvidia.com/gpu.slices.gi"], found["nvidia.com/gpu.slices.ci"]) == ("3", "3")
    assert int(found["nvidia.com/gpu.memory"]) < 40960
    assert "nvidia.com/gpu.engines.copy" in found
    assert not [key for key in found if "/mig-" in key]


def test_hami_announces_places_and_keeps_memory_in_an_annotation(nodes: dict[str, Obj]) -> None:
    node = nodes["hami"]
    assert devices(node) == {"nvidia.com/gpu": "20"}
    assert labels(node)["gpu"] == "on"
    first, second = json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
    assert first == {
        "id": gpus.card_id("hami", 0),
        "count": 10,
        "devmem": 81920,
        "devcore": 100,
        "type": "NVIDIA-A100-SXM4-80GB",
        "mode": "hami-core",
        "health": True,
    }
    assert second == first | {"id": gpus.card_id("hami", 1), "index": 1}


def share(name: str, memory_mib: int, cores: int, **annotations: str) -> Obj:
    body = pod(name)
    amounts = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory_mib), "nvidia.com/gpucores": str(cores)}
    body["metadata"]["annotations"] = {
        f"hami.io/{key}-scheduler-policy": it for key, it in annotations.items()
    }
    body["spec"] |= {"schedulerName": "hami-scheduler"}
    body["spec"]["containers"][0]["resources"] = {"limits": amounts}
    return body


def given(body: Obj) -> str:
    return str(body["metadata"].get("annotations", {}).get("hami.io/vgpu-devices-allocated", ""))


def is_placed(body: Obj) -> bool:
    return bool(body["spec"].get("nodeName"))


def refusal(body: Obj) -> str:
    return next((c["message"] for c in body["status"].get("conditions", []) if c["status"] == "False"), "")


def test_hamis_scheduler_gives_out_memory_and_cores_of_its_own_nodes_cards(cluster: DevCluster) -> None:
    space = cluster.fresh()
    first, second = (gpus.card_id("hami", n) for n in (0, 1))
    cluster.create(f"{space}/pods", share("a", 60_000, 30, gpu="binpack"))
    assert given(cluster.until(f"{space}/pods/a", is_placed)) == f"{first},NVIDIA,60000,30:;"
    cluster.create(f"{space}/pods", share("b", 20_000, 60, gpu="binpack"))  # fits on the same card
    found = cluster.until(f"{space}/pods/b", is_placed)
    assert (found["spec"]["nodeName"], given(found)) == ("hami", f"{first},NVIDIA,20000,60:;")
    cluster.create(f"{space}/pods", share("c", 8_000, 30, gpu="binpack"))
    assert given(cluster.until(f"{space}/pods/c", is_placed)) == f"{second},NVIDIA,8000,30:;"
    cluster.create(f"{space}/pods", share("d", 80_000, 5))
    told = refusal(cluster.until(f"{space}/pods/d", lambda body: bool(refusal(body))))
    assert "1 2/2 CardInsufficientMemory" in told
    cluster.call("DELETE", f"{space}/pods/c")  # its share is free again
    assert given(cluster.until(f"{space}/pods/d", is_placed)) == f"{second},NVIDIA,80000,5:;"
    for name in ("a", "b", "d"):
        cluster.call("DELETE", f"{space}/pods/{name}")


def test_a_card_that_died_or_is_cordoned_is_given_to_nobody(cluster: DevCluster) -> None:
    space = cluster.fresh()
    cordon = {"metadata": {"annotations": {"hami.io/device-cordon": gpus.card_id("hami", 0)}}}
    cluster.call("PATCH", "/api/v1/nodes/hami", cordon, "merge")
    fault = cluster.call("POST", "/_faults", {"node": "hami", "dead_gpus": 1})[1]
    cluster.create(f"{space}/pods", share("e", 8_000, 30))
    told = refusal(cluster.until(f"{space}/pods/e", lambda body: bool(refusal(body))))
    assert "1/2 CardCordoned, 1/2 CardNotHealth" in told
    cluster.call("DELETE", f"/_faults/{fault['id']}")
    cordon["metadata"]["annotations"]["hami.io/device-cordon"] = ""
    cluster.call("PATCH", "/api/v1/nodes/hami", cordon, "merge")
    assert given(cluster.until(f"{space}/pods/e", is_placed))


def test_who_asks_for_hamis_resources_is_its_schedulers_as_its_webhook_has_it(cluster: DevCluster) -> None:
    space = cluster.fresh()
    body = share("f", 8_000, 30)
    del body["spec"]["schedulerName"]
    cluster.create(f"{space}/pods", body)
    found = cluster.until(f"{space}/pods/f", is_placed)
    assert (found["spec"]["nodeName"], bool(given(found))) == ("hami", True)


def test_gpu_manager_counts_hundredths_and_blocks_of_256_mib(nodes: dict[str, Obj]) -> None:
    assert labels(nodes["tencent"])["nvidia-device-enable"] == "enable"
    assert devices(nodes["tencent"]) == {"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "640"}


def test_a_way_of_sharing_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sharing: halves: not one of none, time-slicing, mps, mig, hami"):
        gpus.check({"sharing": "halves"})
