"""metrics.k8s.io: the use of pods and nodes, as metrics-server reports it."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.kubelet.processes.usage import NOTHING, of_families, played
from devcluster.serving.metrics import _duration
from devcluster.testing.cluster import DevCluster, pod
from devcluster.testing.kube import Obj
from helpers.kubectl import Kubectl, columns, needs_kubectl

API = "/apis/metrics.k8s.io/v1beta1"
NODES = """
nodes: [{name: gpu, count: 2, cpu: 64, memory: 512Gi}]
played: {start_seconds: 0.05, ready_seconds: 0.05}
metrics: {every_seconds: 0.3}
"""
BURN = """
import time
kept = bytearray(64 * 2**20)
while time.process_time() < 0.2: pass
print(flush=True)
time.sleep(60)
"""


def limited(name: str, cpu: str, memory: str) -> Obj:
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": cpu, "memory": memory}}
    return body


def test_a_family_of_processes_counts_together() -> None:
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        found = of_families([parent.pid])[parent.pid]
        os.killpg(parent.pid, 9)
    assert found.cpu_seconds > 0.15
    assert found.memory_bytes > 64 * 2**20
    assert of_families([parent.pid])[parent.pid] == NOTHING


def test_a_played_life_never_takes_cpu_back_nor_more_than_its_limits() -> None:
    used = [played(float(age), 4.0, 2**30, 0.3) for age in range(0, 3600, 10)]
    rates = [(b.cpu_seconds - a.cpu_seconds) / 10 for a, b in itertools.pairwise(used)]
    assert 0.4 <= min(rates) < 0.5
    assert 2.7 < max(rates) <= 2.8
    assert used[0].memory_bytes == int(0.2 * 2**30) < used[-1].memory_bytes <= 2**29


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(10.0, "10s"), (15.0234, "15.023s"), (60.5, "1m0.5s"), (7200.0, "2h0m0s"), (59.9996, "1m0s")],
)
def test_windows_are_told_as_go_writes_them(seconds: float, shown: str) -> None:
    assert _duration(seconds) == shown


def test_its_group_is_discovered(cluster: DevCluster) -> None:
    groups = {group["name"]: group for group in cluster.get("/apis")["groups"]}
    assert groups["metrics.k8s.io"]["preferredVersion"]["version"] == "v1beta1"
    kinds = {entry["name"]: entry for entry in cluster.get(API)["resources"]}
    assert {name: (kind["kind"], kind["namespaced"]) for name, kind in kinds.items()} == {
        "nodes": ("NodeMetrics", False),
        "pods": ("PodMetrics", True),
    }


def test_what_runs_has_figures_and_what_does_not_has_none(cluster: DevCluster, space: str) -> None:
    namespace = space.rpartition("/")[2]
    cluster.create(f"{space}/pods", limited("busy", "2", "1Gi"))
    cluster.create(f"{space}/pods", pod("waits", nodeSelector={"no": "such"}))
    of_space = f"{API}/namespaces/{namespace}/pods"
    found = cluster.until(of_space, lambda body: bool(body.get("items")))
    assert (found["kind"], found["apiVersion"], found["metadata"]) == (
        "PodMetricsList",
        "metrics.k8s.io/v1beta1",
        {},
    )
    assert [item["metadata"]["name"] for item in found["items"]] == ["busy"]
    one = cluster.get(f"{of_space}/busy")
    assert (one["kind"], one["metadata"]["labels"]) == ("PodMetrics", {"app": "busy"})
    (container,) = one["containers"]
    assert container["name"] == "main"
    assert 0 < int(container["usage"]["cpu"].removesuffix("n")) < 2e9
    assert 0.19 * 2**20 < int(container["usage"]["memory"].removesuffix("Ki")) < 0.5 * 2**20
    assert one["window"].endswith("s")
    node = cluster.get(f"{space}/pods/busy")["spec"]["nodeName"]
    nodes = {item["metadata"]["name"]: item["usage"] for item in cluster.get(f"{API}/nodes")["items"]}
    assert int(nodes[node]["cpu"].removesuffix("n")) > 0
    _selectors_choose(cluster, of_space)
    _tables_are_printed(cluster, of_space)


def _selectors_choose(cluster: DevCluster, of_space: str) -> None:
    for selector, count in (("app=busy", 1), ("app=waits", 0)):
        assert len(cluster.get(of_space, labelSelector=selector)["items"]) == count
    assert len(cluster.get(f"{API}/pods", fieldSelector="metadata.name=busy", limit=1)["items"]) == 1
    code, refused = cluster.call("GET", f"{of_space}/waits")
    assert (code, refused["details"]["group"]) == (404, "metrics.k8s.io")
    assert cluster.call("GET", f"{of_space}/absent")[1]["message"] == 'pods "absent" not found'
    assert cluster.call("DELETE", f"{of_space}/busy")[0] == 405


def _tables_are_printed(cluster: DevCluster, of_space: str) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    _, table = cluster.call("GET", of_space, headers=accept)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert table["rows"][0]["cells"][0] == "busy"


def test_of_a_node_that_is_not_heard_nothing_is_known(cluster: DevCluster, space: str) -> None:
    cluster.until(f"{API}/nodes", lambda body: len(body.get("items", [])) == 2)
    cluster.create("/_faults", {"node": "gpu-1", "state": "unreachable"})
    cluster.until(f"{API}/nodes/gpu-1", lambda body: body.get("code") == 404)


@pytest.mark.parametrize(("state", "code", "listed"), [("absent", 404, False), ("unavailable", 503, True)])
def test_a_cluster_without_it_can_be_played(
    cluster: DevCluster, space: str, state: str, code: int, listed: bool
) -> None:
    cluster.create("/_faults", {"metrics": state})
    assert cluster.call("GET", f"{API}/pods")[0] == code
    assert ("metrics.k8s.io" in {group["name"] for group in cluster.get("/apis")["groups"]}) is listed
    cluster.call("DELETE", "/_faults")
    assert cluster.call("GET", f"{API}/pods")[0] == 200


@needs_kubectl
def test_kubectl_top(cluster: DevCluster, space: str, tmp_path: Path) -> None:
    kubectl = Kubectl(cluster.kubeconfig, tmp_path, space.rpartition("/")[2])
    cluster.create(f"{space}/pods", limited("busy", "2", "1Gi"))
    cluster.until(f"{API}/namespaces/{kubectl.namespace}/pods/busy", lambda body: "containers" in body)
    heads, (name, cpu, memory) = columns(kubectl("top", "pod"))
    assert [head.split("(")[0] for head in heads] == ["NAME", "CPU", "MEMORY"]
    assert name == "busy"
    assert 0 < int(cpu.removesuffix("m")) < 2000
    assert math.isclose(int(memory.removesuffix("Mi")), 0.2 * 1024, rel_tol=0.3)
    cluster.until(
        f"{API}/nodes", lambda body: len(body.get("items", [])) == 2
    )  # also a node that was silent in another test
    assert {"gpu-1", "gpu-2"} <= {row[0] for row in columns(kubectl("top", "node"))}
    cluster.create("/_faults", {"metrics": "absent"})
    assert kubectl.fails("top", "pod") == "error: Metrics API not available\n"
