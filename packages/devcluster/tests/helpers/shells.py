"""Process pods that run a script: their objects, their output, and the programs that tests run inside them."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import pytest

from devcluster.kubelet.network import names
from devcluster.kubelet.processes.process import ProcessRuntime
from devcluster.kubelet.runtime import ContainerPlan, Exit
from devcluster.network import SharedNetwork
from devcluster.nodes import Image
from devcluster.testing.cluster import ROOT, DevCluster
from devcluster.testing.kube import Obj

MIB = 2**20
PROCESSES = ("--pods", "process", "--image", f"local/venv:1={sys.prefix}")
"""Arguments of a cluster whose pods are local processes. Any virtual environment will do as their image."""
process_pods = pytest.mark.skipif(
    not ROOT or shutil.which("unshare") is None, reason="process pods with disks need root and util-linux"
)
NODES = """
nodes: [{name: here, cpu: 8, memory: 64Gi}]
metrics: {every_seconds: 0.3}
"""
SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
ATTACKS = Path(__file__).with_name("attacks.py")
SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin") or ""


def shell(name: str, script: str, mounts: dict[str, Obj] | None = None, **spec: object) -> Obj:
    """Return a pod that runs a script; `mounts` maps paths to volume sources."""
    volumes = [{"name": f"v{n}", **source} for n, source in enumerate((mounts or {}).values())]
    at = [{"name": f"v{n}", "mountPath": path} for n, path in enumerate(mounts or {})]
    container: Obj = {
        "name": "main",
        "image": "local/venv:1",
        "command": ["sh", "-c", script],
        "volumeMounts": at,
    }
    container["resources"] = spec.pop("resources", {})
    container["env"] = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    usual = {"securityContext": SECURITY, "restartPolicy": "Never", "terminationGracePeriodSeconds": 2}
    body = {
        "containers": [container],
        "volumes": volumes,
        "automountServiceAccountToken": False,
        **usual,
        **spec,
    }
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": body}


def output(cluster: DevCluster, space: str, body: Obj) -> str:
    """Return the output of a pod that ended successfully."""
    cluster.create(f"{space}/pods", body)
    path = f"{space}/pods/{body['metadata']['name']}"
    cluster.until(path, lambda o: o["status"].get("phase") in ("Succeeded", "Failed"))
    _, text = cluster.call("GET", f"{path}/log")
    assert cluster.get(path)["status"]["phase"] == "Succeeded", text
    return str(text)


def python(name: str, code: str, *arguments: str) -> Obj:
    """Return a pod that runs Python code."""
    body = shell(name, "")
    body["spec"]["containers"][0]["command"] = ["python", "-c", code, *arguments]
    return body


def attack(cluster: DevCluster, space: str, *arguments: str) -> Obj:
    """Return which attempts of the program of attacks succeeded in a pod."""
    return found(output(cluster, space, python("attacker", ATTACKS.read_text(), *arguments)))


def found(text: str) -> Obj:
    return dict(json.loads(text.removeprefix("found ")))


def disk(cluster: DevCluster, space: str, name: str, size: str = "20Mi") -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    cluster.create(f"{space}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
    return {"persistentVolumeClaim": {"claimName": name}}


async def ended(state: Path, script: str, limit_mib: int, *, control_groups: bool) -> Exit:
    uid = "11111111-2222-3333-4444-555555555555"
    (state / "roots").mkdir()
    names.folder(state, uid).mkdir(parents=True)
    plan = ContainerPlan(
        pod_uid=uid,
        name="main",
        hostname="p",
        address="127.16.0.5",
        image=Image(root=Path(sys.prefix)),
        command=["sh", "-c", script],
        env={},
        working_dir="",
        uid=1000,
        gid=1000,
        groups=[],
        host_uid=712345678,
        memory_bytes=limit_mib * MIB,
        log=state / "log",
    )
    runtime = ProcessRuntime(state, SharedNetwork(), control_groups=control_groups)
    container = await runtime.start(plan)
    try:
        return await asyncio.wait_for(container.wait(), 30)
    finally:
        await runtime.close()
