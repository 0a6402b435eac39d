"""Kubernetes objects of a workspace, as dicts. Pure. Seen working on Kubernetes 1.36, Pod Security `restricted`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from clusters import labels
from clusters.models import Cluster
from clusters.own_place import only_berth_opens_jupyter
from clusters.quantities import format_mib
from quotas import sharing
from workspaces import start

from . import pod
from .digest import HASH, digest_of
from .tenancy import JUPYTER_PORT, SSH_PORT
from .wanted import Wanted

FINALIZER = "berth.dev/end-seen"


def volume_claims(wanted: Wanted) -> list[dict[str, Any]]:
    """PVCs of home and local disk. Nothing owns them, because they outlive every run."""
    workspace, cluster = wanted.workspace, wanted.cluster
    claims = [_claim(wanted, "home", cluster.home_class, cluster.home_mib)]
    if workspace.disk_mib:
        claims.append(_claim(wanted, "disk", cluster.disk_class, workspace.disk_mib))
    return claims


def _claim(wanted: Wanted, role: str, storage_class: str, size_mib: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format_mib(size_mib)}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return _object(wanted, "v1", "PersistentVolumeClaim", f"{wanted.name}-{role}", spec=spec)


def stateful_set(wanted: Wanted, *, replicas: int) -> dict[str, Any]:
    """StatefulSet of one pod, never two: the next comes when the last is gone, and that goes when its end was seen."""
    template = {
        "metadata": {
            "labels": wanted.labels | {labels.RUN: str(wanted.run)},
            "annotations": {
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                **pod.gpu_parts(wanted).annotations,
                **sharing.of(wanted.workspace.pool).avoiding(wanted.bad_gpus),
            },
            "finalizers": [FINALIZER],
        },
        "spec": pod.spec(wanted),
    }
    body = _object(
        wanted,
        "apps/v1",
        "StatefulSet",
        wanted.name,
        spec={
            "replicas": replicas,
            "serviceName": wanted.name,
            # A template changed by a newer Berth or by hand never restarts a running pod.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {labels.WORKSPACE: str(wanted.workspace.pk)}},
            "template": template,
        },
    )
    body["metadata"]["labels"][labels.RUN] = str(wanted.run)
    return body


def trial_pod(wanted: Wanted) -> dict[str, Any]:
    """Pod as the StatefulSet will create it, for a dry run: a refusal comes back as an answer."""
    metadata = {
        "name": f"{wanted.name}-0",
        "namespace": wanted.namespace,
        "labels": wanted.labels | {labels.RUN: str(wanted.run)},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.spec(wanted)}


def secret(wanted: Wanted, owner: Mapping[str, Any]) -> dict[str, Any]:
    values = {
        "jupyter-token": wanted.secret.jupyter_token,
        "gateway-token": wanted.secret.gateway_token,
        "ssh_host_ed25519_key": wanted.secret.host_key,
        "authorized_keys": "".join(f"{key}\n" for key in wanted.secret.authorized_keys),
    } | {pod.secret_env_key(name): value for name, value in wanted.secret.env.items()}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in sorted(values.items())}
    return _owned(_object(wanted, "v1", "Secret", wanted.name, type="Opaque", data=data), owner)


def config_map(wanted: Wanted, owner: Mapping[str, Any]) -> dict[str, Any]:
    """ConfigMap with the start script and the container's users: a uid needs a name, or SSH refuses the login."""
    image = wanted.workspace.image
    passwd = (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{image.username}:x:{image.uid}:{image.gid}:{image.username}:{image.home}:{image.shell}\n"
        "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
    group = f"root:x:0:\n{image.username}:x:{image.gid}:\nnogroup:x:65534:\n"
    data = {**start.files(), "passwd": passwd, "group": group}
    return _owned(_object(wanted, "v1", "ConfigMap", wanted.name, data=data), owner)


SERVICE_TYPES = {
    Cluster.Exposure.LOAD_BALANCER: "LoadBalancer",
    Cluster.Exposure.NODE_PORT: "NodePort",
    Cluster.Exposure.PORTAL: "ClusterIP",
}


def service(wanted: Wanted, owner: Mapping[str, Any]) -> dict[str, Any]:
    """Service of the workspace. It answers also while Jupyter is not ready: SSH must not die with a frozen notebook.

    An image that offers nothing that is published still gets one, since no Service can be without ports: within the
    cluster alone.
    """
    cluster, image = wanted.cluster, wanted.workspace.image
    jupyter = {"name": "jupyter", "port": JUPYTER_PORT, "targetPort": JUPYTER_PORT, "protocol": "TCP"}
    ssh = {"name": "ssh", "port": cluster.ssh_service_port, "targetPort": SSH_PORT, "protocol": "TCP"}
    ports = [jupyter] if image.offers_jupyter and publishes_jupyter(cluster) else []
    ports += [ssh] if image.offers_ssh else []
    spec: dict[str, Any] = {
        "type": SERVICE_TYPES[Cluster.Exposure(cluster.exposure) if ports else Cluster.Exposure.PORTAL],
        "publishNotReadyAddresses": True,
        "selector": {labels.WORKSPACE: str(wanted.workspace.pk)},
        "ports": ports or [jupyter],
    }
    if spec["type"] == "LoadBalancer":
        spec["allocateLoadBalancerNodePorts"] = False
    return _owned(_object(wanted, "v1", "Service", wanted.name, spec=spec), owner)


def publishes_jupyter(cluster: Cluster) -> bool:
    """Return True if the Service has Jupyter's port. Otherwise Berth goes to the pod's own address (`observe`)."""
    if cluster.exposure == Cluster.Exposure.LOAD_BALANCER:
        return not only_berth_opens_jupyter(cluster)
    return cluster.exposure == Cluster.Exposure.PORTAL


def _object(wanted: Wanted, api: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": wanted.namespace, "labels": wanted.labels}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}


def _owned(body: dict[str, Any], owner: Mapping[str, Any]) -> dict[str, Any]:
    """Make the StatefulSet the owner, so that nothing of a run is left when the set is deleted."""
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,  # the set goes last, so one watch reports the end of all
        }
    ]
    return body


def stamped(body: dict[str, Any]) -> dict[str, Any]:
    """Add the digest of the object, so that only what differs is applied again."""
    digest = digest_of(body)
    metadata = body["metadata"]
    return {
        **body,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), HASH: digest}},
    }
