"""Rows and raw objects for pure tests: nothing here touches a database or a cluster."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.models import Tenant, User
from clusters.models import Cluster
from quotas.models import Pool
from storage.models import HOME_PATH, Mount, Volume
from workloads.models import Image
from workloads.pods.wanted import Shared
from workspaces.cluster.wanted import SecretValues, Wanted
from workspaces.models import Workspace

INSTANCE = UUID("00000000-0000-4000-8000-000000000001")
RUN = UUID("00000000-0000-4000-8000-0000000000aa")
HOME = UUID("00000000-0000-4000-8000-0000000000bb")
ID = UUID("00000000-0000-4000-8000-00000000000a")


def workspace(**changes: Any) -> Workspace:
    cluster = Cluster(slug="main", name="Main", home_class="net-shared", disk_class="local-fast")
    pool = Pool(
        slug="a100",
        name="A100",
        cluster=cluster,
        node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )
    values: dict[str, Any] = {
        "id": ID,
        "name": "exp-1",
        "tenant": Tenant(slug="demo", name="Demo"),
        "owner": User(username="alice@uni"),
        "image": Image(slug="jupyter", name="Jupyter", reference="example/jupyter:1"),
        "pool": pool,
        "units": 1,
        "cpu_millicores": 4000,
        "memory_mib": 16384,
        "env": {"MY_ENV": 'a b "q" $x $(HOME)'},
    }
    return Workspace(**(values | changes))


def wanted(row: Workspace | None = None, **changes: Any) -> Wanted:
    secret = SecretValues(
        jupyter_token="t0ken",
        gateway_token="g4te",
        host_key="host key",
        authorized_keys=["ssh-ed25519 AAAA alice"],
        env={"API_KEY": "hush"},
    )
    values: dict[str, Any] = {
        "workload": row or workspace(),
        "instance": INSTANCE,
        "run": RUN,
        "node": "gpu-1",
        "requested_cpu_millicores": 2000,
        "requested_memory_mib": 8192,
    }
    read = {"secret": secret, "bad_gpus": (), "unwell_nodes": {}}
    read |= {name: changes.pop(name) for name in read.keys() & changes.keys()}
    shared = Shared()
    shared.__dict__["mounts"] = {values["workload"].pk: changes.pop("mounts", [home_mount()])}
    made = Wanted(shared=shared, **(values | changes))
    made.__dict__.update(read)  # as if they had been read from rows
    return made


def home_mount(path: str = HOME_PATH) -> Mount:
    return Mount(volume=Volume(id=HOME, kind="home"), path=path, read_only=False)


def claim(phase: str = "Bound", storage_class: str = "net-shared", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"ws-{ID}-home", "uid": "c1", **metadata},
        "spec": {"storageClassName": storage_class},
        "status": {"phase": phase},
    }


def pod(
    *,
    node: str = "gpu-1",
    phase: str = "Pending",
    conditions: dict[str, str] | None = None,
    container: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    run: UUID = RUN,
    **metadata: Any,
) -> dict[str, Any]:
    of_run = {"berth.dev/run": str(run)}
    known = {"name": f"ws-{ID}", "uid": "p1", "namespace": "berth-demo", "labels": of_run}
    return {
        "metadata": {**known, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": [{"type": t, "status": s} for t, s in (conditions or {}).items()],
            "containerStatuses": [{"name": "workspace", **container}] if container else [],
            **(status or {}),
        },
    }


RUNNING = {
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    "imageID": "sha256:1",
    "restartCount": 0,
}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def service(ip: str = "127.64.0.5") -> dict[str, Any]:
    ports = [{"name": "jupyter", "port": 8888}, {"name": "ssh", "port": 22}]
    ingress = {"ingress": [{"ip": ip}]} if ip else {}
    return {
        "metadata": {"name": f"ws-{ID}", "uid": "v1"},
        "spec": {"type": "LoadBalancer", "ports": ports},
        "status": {"loadBalancer": ingress},
    }


def event(reason: str, kind: str, message: str, at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {"reason": reason, "message": message, "involvedObject": {"kind": kind}, "lastTimestamp": at}
