"""Kubernetes objects of a workspace, as dicts. Pure. Seen working on Kubernetes 1.36, Pod Security `restricted`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from clusters import labels
from clusters.labels import HASH, digest_of
from clusters.models import Cluster
from clusters.own_place import only_berth_opens_jupyter
from clusters.pods.ends import FINALIZER
from quotas import sharing
from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT, tenant_labels
from workspaces import start

from . import pod as parts
from .wanted import Wanted

START = "berth-start-"  # names of the ConfigMaps with the start script


def pod(wanted: Wanted) -> dict[str, Any]:
    """Pod of a run. Its name is the workspace's own, so that there are never two: the next comes when this is gone, and
    that goes when its end was seen."""
    body = _object(
        wanted, "v1", "Pod", wanted.name, spec=parts.spec(wanted, start_files(wanted)["metadata"]["name"])
    )
    body["metadata"] |= {
        "labels": wanted.labels | {labels.RUN: str(wanted.run)},
        "annotations": {
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            **parts.gpu_parts(wanted).annotations,
            **sharing.of(wanted.workspace.pool).avoiding(wanted.bad_gpus),
        },
        "finalizers": [FINALIZER],
    }
    return body


def secret(wanted: Wanted) -> dict[str, Any]:
    values = {
        "jupyter-token": wanted.secret.jupyter_token,
        "gateway-token": wanted.secret.gateway_token,
        "ssh_host_ed25519_key": wanted.secret.host_key,
        "authorized_keys": "".join(f"{key}\n" for key in wanted.secret.authorized_keys),
    } | {parts.secret_env_key(name): value for name, value in wanted.secret.env.items()}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in sorted(values.items())}
    return _object(wanted, "v1", "Secret", wanted.name, type="Opaque", data=data)


def start_files(wanted: Wanted) -> dict[str, Any]:
    """ConfigMap with the start script and the container's users, one for all workspaces of a namespace with the same.

    A uid needs a name, or SSH refuses the login. The map is named after its content, and never changes.
    """
    image = wanted.workspace.image
    digest, data = _start_data(image.username, image.uid, image.gid, image.home, image.shell)
    body = _object(wanted, "v1", "ConfigMap", f"{START}{digest}", data=dict(data), immutable=True)
    body["metadata"]["labels"] = tenant_labels(wanted.workspace.tenant, wanted.instance)
    return body


@lru_cache
def _start_data(username: str, uid: int, gid: int, home: str, shell: str) -> tuple[str, Mapping[str, str]]:
    passwd = (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{username}:x:{uid}:{gid}:{username}:{home}:{shell}\n"
        "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
    group = f"root:x:0:\n{username}:x:{gid}:\nnogroup:x:65534:\n"
    data = {**start.files(), "passwd": passwd, "group": group}
    return digest_of(data), data


SERVICE_TYPES = {
    Cluster.Exposure.LOAD_BALANCER: "LoadBalancer",
    Cluster.Exposure.NODE_PORT: "NodePort",
    Cluster.Exposure.PORTAL: "ClusterIP",
}


def service(wanted: Wanted) -> dict[str, Any]:
    """Service of the workspace. It answers also while Jupyter is not ready: SSH must not die with a frozen notebook.

    An image that offers nothing that is published still gets one, since no Service can be without ports: within the
    cluster alone. Nobody watches Secrets, so the Service's digest tells whether its Secret is the wanted one, too.
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
    body = _object(wanted, "v1", "Service", wanted.name, spec=spec)
    body["metadata"]["annotations"] = {HASH: digest_of([body, secret(wanted)])}
    return body


def publishes_jupyter(cluster: Cluster) -> bool:
    """Return True if the Service has Jupyter's port. Otherwise Berth goes to the pod's own address (`observe`)."""
    if cluster.exposure == Cluster.Exposure.LOAD_BALANCER:
        return not only_berth_opens_jupyter(cluster)
    return cluster.exposure == Cluster.Exposure.PORTAL


def _object(wanted: Wanted, api: str, kind: str, name: str, **body: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": wanted.namespace, "labels": wanted.labels}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}
