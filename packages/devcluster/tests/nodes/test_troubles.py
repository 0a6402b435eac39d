"""Faults in the words of the component that meets them: each begins with its switch and ends with it."""

import pytest

from devcluster.testing.cluster import DevCluster, is_ready, pod, volume_claim
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until

NODES = """
nodes:
  - {name: gpu, count: 2, gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, memory_mib: 81920}}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
back_off: {first_seconds: 0.2}
"""


def events(cluster: DevCluster, space: str, reason: str) -> list[str]:
    return [e["message"] for e in cluster.get(f"{space}/events")["items"] if e["reason"] == reason]


def gpu_pod(name: str) -> Obj:
    body = pod(name)
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    return body


def ready(cluster: DevCluster, space: str, name: str) -> bool:
    return is_ready(cluster.get(f"{space}/pods/{name}"))


SLOW = pytest.mark.slow
SANDBOX = "FailedCreatePodSandBox"
REFUSED = [
    pytest.param({"pod": "sandbox", "error": "no-address"}, SANDBOX,
                 "Assigned 0 out of 1 requested IPv4 addresses; No IPs available in pools: [10.244.0.0/16]"),
    pytest.param({"pod": "container", "error": "no-uvm"}, "Failed",
                 "nvidia-container-cli: mount error: stat failed: /dev/nvidia-uvm: no such file or directory"),
    pytest.param({"pod": "sandbox", "error": "runtime-down"}, SANDBOX,
                 "dial unix /run/containerd/containerd.sock: connect: connection refused", marks=SLOW),
    pytest.param({"image": "local/none:*", "error": "runtime-down"}, "InspectFailed",
                 'Failed to inspect image "local/none:1": rpc error: code = Unavailable', marks=SLOW),
    pytest.param({"pod": "container", "error": "devices-allow"}, "Failed",
                 "/devices.allow: no such file or directory", marks=SLOW),
    pytest.param({"pod": "container", "error": "no-nvml"}, "Failed",
                 "could not load NVML library", marks=SLOW),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "reason", "words"), REFUSED)
def test_a_pod_does_not_start_and_says_why_until_the_fault_ends(
    cluster: DevCluster, space: str, spec: Obj, reason: str, words: str
) -> None:
    fault = cluster.switch(**spec)
    body = gpu_pod("one")
    cluster.call("POST", f"{space}/pods", body)
    until(lambda: any(words in told for told in events(cluster, space, reason)))
    assert not ready(cluster, space, "one")
    cluster.call("DELETE", f"/_faults/{fault}")
    until(lambda: ready(cluster, space, "one"))


@pytest.mark.slow
def test_what_nvidias_toolkit_refuses_strikes_only_whoever_asks_for_a_gpu(
    cluster: DevCluster, space: str
) -> None:
    cluster.switch(pod="container", error="no-driver", match={"name": "*"})
    cluster.call("POST", f"{space}/pods", pod("plain"))
    until(lambda: ready(cluster, space, "plain"))


def test_one_lost_gpu_may_poison_its_node(cluster: DevCluster, space: str) -> None:
    cluster.switch(gpu="gpu-1/5", state="lost", withdrawn=False, poisons=True)
    body = gpu_pod("unlucky")
    body["spec"]["nodeName"] = "gpu-1"
    cluster.call("POST", f"{space}/pods", body)
    until(lambda: bool(events(cluster, space, "UnexpectedAdmissionError")))
    (told,) = events(cluster, space, "UnexpectedAdmissionError")
    assert "error creating nvml.Device 5: nvml: GPU is lost, which is unexpected" in told
    cluster.call("POST", f"{space}/pods", pod("plain", nodeName="gpu-1"))
    until(lambda: ready(cluster, space, "plain"))


@pytest.mark.slow
def test_a_node_whose_runtime_is_down_says_so_and_starts_nothing(cluster: DevCluster, space: str) -> None:
    fault = cluster.switch(node="gpu-1", state="runtime-down")
    until(lambda: not is_ready(cluster.get("/api/v1/nodes/gpu-1")))
    found = cluster.get("/api/v1/nodes/gpu-1")["status"]["conditions"]
    assert any(c["message"].startswith("[container runtime is down, PLEG is not healthy") for c in found)
    cluster.call(
        "POST", f"{space}/pods", pod("bound", nodeName="gpu-1", tolerations=[{"operator": "Exists"}])
    )
    until(lambda: bool(events(cluster, space, "FailedCreatePodSandBox")))
    cluster.call("DELETE", f"/_faults/{fault}")
    until(lambda: ready(cluster, space, "bound"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "error", "reason", "words"),
    [
        ("attach", "elsewhere", "FailedAttachVolume", "Multi-Attach error for volume"),
        ("attach", "silent", "FailedAttachVolume", "timed out waiting for external-attacher of net.devcluster"),
        ("mount", "superblock", "FailedMount", "can't read superblock on /dev/rbd0"),
        ("mount", "mds", "FailedMount", "mount error: no mds (Metadata Server) is up"),
        ("mount", "rbd", "FailedMount", "rbd: map failed: (22) Invalid argument"),
        ("mount", "timeout", "FailedMount", "code = DeadlineExceeded desc = context deadline exceeded"),
    ],
)  # fmt: skip
def test_a_volume_fails_in_its_drivers_words(
    cluster: DevCluster, space: str, step: str, error: str, reason: str, words: str
) -> None:
    fault = cluster.switch(volume=step, error=error)
    cluster.call("POST", f"{space}/persistentvolumeclaims", volume_claim("data", "1Gi"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.call("POST", f"{space}/pods", pod("one", volumes=volumes))
    until(lambda: any(words in told for told in events(cluster, space, reason)))
    assert "{" not in events(cluster, space, reason)[0]
    cluster.call("DELETE", f"/_faults/{fault}")
    until(lambda: ready(cluster, space, "one"))


def service(name: str) -> Obj:
    return {
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 22}]},
    }


def pool(cluster: DevCluster) -> Obj:
    (found,) = cluster.get("/apis/metallb.io/v1beta1/ipaddresspools")["items"]
    return {**found["status"], **found["spec"]}


def has_address(cluster: DevCluster, space: str, name: str) -> bool:
    return bool(cluster.get(f"{space}/services/{name}")["status"]["loadBalancer"])


def test_addresses_of_load_balancers_run_out_as_metallb_says_it(cluster: DevCluster, space: str) -> None:
    fault = cluster.switch(addresses=pool(cluster)["assignedIPv4"] + 1)
    assert pool(cluster)["availableIPv4"] == 1
    assert pool(cluster)["addresses"][0].startswith("127.64.0.1-127.64.0.")
    cluster.call("POST", f"{space}/services", service("first"))
    until(lambda: has_address(cluster, space, "first"))
    cluster.call("POST", f"{space}/services", service("second"))
    namespace = space.rpartition("/")[2]
    words = f'Failed to allocate IP for "{namespace}/second": no available IPs'
    until(lambda: words in events(cluster, space, "AllocationFailed"))
    assert not has_address(cluster, space, "second")
    assert pool(cluster)["availableIPv4"] == 0
    cluster.call("DELETE", f"/_faults/{fault}")
    until(lambda: has_address(cluster, space, "second"))
