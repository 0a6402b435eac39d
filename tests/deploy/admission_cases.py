"""Requests that deploy/kubernetes/admission.yaml lets in, and that it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.admission import TENANT, Body, Request

GOLDEN = Path(__file__).parents[1] / "workspaces" / "cluster" / "golden"
PODS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(GOLDEN.glob("*.yaml"))}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def pod(change: Callable[[Body], Any] = lambda spec: None) -> Body:
    body: Body = copy.deepcopy(PODS["none"])
    change(body["spec"])
    return body


def job(change: Callable[[Body], Any] = lambda spec: None) -> Body:
    template = {"spec": pod(change)["spec"] | {"restartPolicy": "Never"}}
    metadata = {"name": "job-1", "namespace": "berth-demo"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def namespace(name: str = "berth-demo", labels: Body | None = None) -> Body:
    labels = TENANT | RESTRICTED if labels is None else labels
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def secret() -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ws-1", "namespace": "berth-demo"},
        "stringData": {"token": "x"},
    }


def service(**spec: Any) -> Body:
    metadata = {"name": "ws-1", "namespace": "berth-demo"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [{"port": 22}]} | spec,
    }


def node(labels: Body | None = None, notes: Body | None = None, **spec: Any) -> Body:
    metadata = {"name": "gpu-1", "labels": {"zone": "a"} | (labels or {}), "annotations": notes or {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def volume(path: str = "/usr/local/nvidia", name: str = "driver-1-demo", space: str = "berth-demo") -> Body:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": space, "name": "driver-1"},
            "hostPath": {"path": path, "type": "Directory"},
        },
    }


def loose_volume(**status: Any) -> Body:
    body = volume("/data", "pvc-1")
    del body["spec"]["claimRef"]
    return body | ({"status": status} if status else {})


def content(space: str = "berth-demo") -> Body:
    spec = {
        "deletionPolicy": "Retain",
        "driver": "x",
        "source": {"snapshotHandle": "s"},
        "volumeSnapshotRef": {"namespace": space, "name": "copy"},
    }
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotContent",
        "metadata": {"name": "content-1"},
        "spec": spec,
    }


def with_container(**context: Any) -> Callable[[Body], Any]:
    return lambda spec: spec["containers"][0]["securityContext"].update(context)


def with_volume(**source: Any) -> Callable[[Body], Any]:
    return lambda spec: spec["volumes"].append({"name": "more", **source})


CORDONED: Body = {
    "unschedulable": True,
    "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
}
OTHER_TAINT: Body = {"taints": [{"key": "x", "effect": "NoSchedule"}]}
INSIDE, OUTSIDE = "Berth writes only in namespaces", {"kubernetes.io/metadata.name": "default"}

SCRATCH = {
    "volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    }
}
# Its label managed-by was removed by hand.
HALF_LABELLED: Body = {"berth.dev/instance": "1"}

LET_IN = {
    **{f"a pod of {name}": Request("CREATE", body) for name, body in PODS.items()},
    "a Job": Request("CREATE", job()),
    "a pod with scratch space": Request("CREATE", pod(with_volume(ephemeral=SCRATCH))),
    "a Job with scratch space": Request("CREATE", job(with_volume(ephemeral=SCRATCH))),
    "a Secret": Request("CREATE", secret()),
    "a Secret in a namespace that lost a label": Request("CREATE", secret(), space=HALF_LABELLED),
    "a Service": Request("CREATE", service(type="LoadBalancer")),
    "a Service that somebody else changed": Request(
        "UPDATE",
        service(externalIPs=["10.96.0.10"]),
        service(externalIPs=["10.96.0.10"], type="ExternalName", externalName="x.example"),
    ),
    "the end of a pod": Request("UPDATE", pod(), pod()),
    "the deletion of a Secret": Request("DELETE", None, secret()),
    "a trial of a Service elsewhere": Request("CREATE", service(), space=OUTSIDE, is_dry=True),
    "a namespace": Request("CREATE", namespace()),
    "a changed namespace": Request("UPDATE", namespace(), namespace()),
    "a namespace that gets a label again": Request("UPDATE", namespace(), namespace(labels=HALF_LABELLED)),
    "a node that is closed": Request(
        "UPDATE", node(notes={"berth.dev/cordoned-by": "root"}, **CORDONED), node()
    ),
    "a node's label of ECC": Request("UPDATE", node({"berth.dev/gpu.ecc": "on"}), node()),
    "the folder of a driver": Request("CREATE", volume()),
    "the policy of a tenant's volume": Request("UPDATE", volume("/data", "pvc-1"), volume("/data", "pvc-1")),
    "a volume that nobody has": Request("UPDATE", volume("/data", "pvc-1"), loose_volume()),
    "a volume whose PVC is gone": Request(
        "UPDATE",
        volume("/data", "pvc-1"),
        volume("/data", "pvc-1", "bank") | {"status": {"phase": "Released"}},
    ),
    "the policy of a tenant's copy": Request("UPDATE", content(), content()),
    "anything of another controller beside Berth": Request(
        "CREATE", secret(), space=OUTSIDE, user="system:serviceaccount:berth:berth-db"
    ),
    "anything of somebody else": Request("CREATE", secret(), space=OUTSIDE, user="system:serviceaccount:x:y"),
}
REFUSED = {
    "a pod elsewhere": (Request("CREATE", pod(), space=OUTSIDE), INSIDE),
    "a Secret elsewhere": (Request("CREATE", secret(), space=OUTSIDE), INSIDE),
    "the deletion of a Secret elsewhere": (Request("DELETE", None, secret(), space=OUTSIDE), INSIDE),
    "a Secret in a namespace that looks like it": (
        Request("CREATE", secret(), space={"app.kubernetes.io/managed-by": "berth"}),
        INSIDE,
    ),
    "a command in a pod elsewhere": (Request("CONNECT", pod(), space=OUTSIDE, subresource="exec"), INSIDE),
    "a Service elsewhere": (Request("CREATE", service(), space=OUTSIDE), INSIDE),
    "a trial of a Secret elsewhere": (Request("CREATE", secret(), space=OUTSIDE, is_dry=True), INSIDE),
    "a namespace without labels": (Request("CREATE", namespace(labels={})), "A namespace of Berth"),
    "a namespace of another name": (Request("CREATE", namespace("kube-x")), "A namespace of Berth"),
    "a namespace for privileged pods": (
        Request("CREATE", namespace(labels=TENANT | {"pod-security.kubernetes.io/enforce": "privileged"})),
        "A namespace of Berth",
    ),
    "a namespace made privileged": (
        Request("UPDATE", namespace(labels=dict(TENANT)), namespace()),
        "A namespace of Berth",
    ),
    "another's namespace taken": (Request("UPDATE", namespace(), namespace(labels={})), "Berth changes only"),
    "a namespace of another Berth": (
        Request("UPDATE", namespace(), namespace(labels=TENANT | RESTRICTED | {"berth.dev/instance": "2"})),
        "stays with the installation",
    ),
    "a namespace deleted": (Request("DELETE", None, namespace()), "deletes no namespace"),
    "a privileged pod": (
        Request("CREATE", pod(with_container(privileged=True, allowPrivilegeEscalation=True))),
        "no privileges",
    ),
    "a capability": (
        Request("CREATE", pod(with_container(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}))),
        "no privileges",
    ),
    "more privileges later": (
        Request("CREATE", pod(with_container(allowPrivilegeEscalation=True))),
        "no privileges",
    ),
    "a privileged helper": (
        Request(
            "CREATE",
            pod(
                lambda spec: spec.update(
                    initContainers=[{"name": "x", "image": "x", "securityContext": {"privileged": True}}]
                )
            ),
        ),
        "no privileges",
    ),
    "root": (Request("CREATE", pod(with_container(runAsUser=0))), "as root"),
    "the node's network": (
        Request("CREATE", pod(lambda spec: spec.update(hostNetwork=True))),
        "no namespace of its node",
    ),
    "the node's processes": (
        Request("CREATE", pod(lambda spec: spec.update(hostPID=True, shareProcessNamespace=False))),
        "no namespace of its node",
    ),
    "a folder of the node": (Request("CREATE", pod(with_volume(hostPath={"path": "/"}))), "mounts PVCs"),
    "a projected token": (
        Request("CREATE", pod(with_volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}))),
        "mounts PVCs",
    ),
    "a token": (
        Request("CREATE", pod(lambda spec: spec.update(automountServiceAccountToken=True))),
        "no token",
    ),
    "another account": (
        Request("CREATE", pod(lambda spec: spec.update(serviceAccountName="admin"))),
        "no token",
    ),
    "a chosen node": (
        Request("CREATE", pod(lambda spec: spec.update(nodeName="control-plane"))),
        "by the scheduler",
    ),
    "a Job with the node's network": (
        Request("CREATE", job(lambda spec: spec.update(hostNetwork=True))),
        "no namespace of its node",
    ),
    "a Job with a token": (
        Request("CREATE", job(lambda spec: spec.pop("automountServiceAccountToken"))),
        "no token",
    ),
    "a node's taint": (Request("UPDATE", node(**OTHER_TAINT), node()), "unschedulable alone"),
    "a node's taint removed": (Request("UPDATE", node(), node(**OTHER_TAINT)), "unschedulable alone"),
    "a node's label": (Request("UPDATE", node({"zone": "b"}), node()), "its own alone"),
    "a node's label removed": (Request("UPDATE", node(), node({"x": "y"})), "its own alone"),
    "a node's annotation": (Request("UPDATE", node(notes={"x": "y"}), node()), "its own alone"),
    "a node's status": (Request("UPDATE", node(), node(), subresource="status"), "makes and deletes no node"),
    "a folder of the node as a volume": (Request("CREATE", volume("/etc/kubernetes")), "driver's folder"),
    "a volume of another kind": (Request("CREATE", volume(name="pvc-1")), "driver's folder"),
    "another's volume": (Request("UPDATE", volume(space="bank"), volume(space="bank")), "of tenants"),
    "another's volume taken": (
        Request("UPDATE", volume("/data", "pvc-1"), volume("/data", "pvc-1", "bank")),
        "takes over no volume",
    ),
    "another's bound volume taken": (
        Request(
            "UPDATE",
            volume("/data", "pvc-1"),
            volume("/data", "pvc-1", "bank") | {"status": {"phase": "Bound"}},
        ),
        "takes over no volume",
    ),
    "another's copy": (Request("UPDATE", content("bank"), content("bank")), "of tenants"),
    "another's copy taken": (Request("UPDATE", content(), content("bank")), "takes over no volume"),
    "the cluster's addresses": (
        Request("CREATE", service(externalIPs=["10.96.0.10"])),
        "no addresses but those",
    ),
    "one more address of the cluster": (
        Request("UPDATE", service(externalIPs=["10.0.0.1", "10.96.0.10"]), service(externalIPs=["10.0.0.1"])),
        "no addresses but those",
    ),
    "a name of another": (
        Request("CREATE", service(type="ExternalName", externalName="x.example")),
        "no addresses but those",
    ),
    "an address by a Service's status": (
        Request("UPDATE", service(), service(), subresource="status"),
        "no addresses but those",
    ),
    "a volume deleted": (Request("DELETE", None, volume()), "deletes no volume"),
}
