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
from clusters.site import certificates
from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT, tenant_labels
from workloads.pods import parts
from workspaces import start

from . import pod as pods
from .wanted import Wanted

START = "berth-start-"  # names of the ConfigMaps with the start script


def pod(wanted: Wanted) -> dict[str, Any]:
    """Pod of a run. Its name is the workspace's own, so that there are never two: the next comes when this is gone, and
    that goes when its end was seen."""
    spec = pods.spec(wanted, start_files(wanted)["metadata"]["name"])
    body = wanted.object("v1", "Pod", wanted.name, spec=spec)
    body["metadata"] |= parts.metadata(wanted)
    return body


def secret(wanted: Wanted) -> dict[str, Any]:
    values = {
        "jupyter-token": wanted.secret.jupyter_token,
        "gateway-token": wanted.secret.gateway_token,
        "ssh_host_ed25519_key": wanted.secret.host_key,
        "authorized_keys": "".join(f"{key}\n" for key in wanted.secret.authorized_keys),
    } | {parts.secret_env_key(name): value for name, value in wanted.secret.env.items()}
    if wanted.secret.colleague_keys:
        values["colleague_keys"] = "".join(f"{key}\n" for key in wanted.secret.colleague_keys)
    if wanted.workspace.image.offers_ssh and not wanted.workspace.image.offers_jupyter:
        # By its own host key Berth asks what runs there (start/status.sh), as it asks Jupyter elsewhere.
        values["status_key"] = wanted.workspace.secret.host_key_public
    data = {key: base64.b64encode(value.encode()).decode() for key, value in sorted(values.items())}
    return wanted.object("v1", "Secret", wanted.name, type="Opaque", data=data)


def start_files(wanted: Wanted) -> dict[str, Any]:
    """ConfigMap with the start script and the container's users, one for all workspaces of a namespace with the same.

    The map is named after its content, and never changes.
    """
    image = wanted.workspace.image
    trusted = wanted.cluster.trusted_certificates
    digest, data = _start_data(image.username, image.uid, image.gid, image.home, image.shell, trusted)
    body = wanted.object("v1", "ConfigMap", f"{START}{digest}", data=dict(data), immutable=True)
    body["metadata"]["labels"] = tenant_labels(wanted.workspace.tenant, wanted.instance)
    return body


@lru_cache
def _start_data(
    username: str, uid: int, gid: int, home: str, shell: str, trusted: str
) -> tuple[str, Mapping[str, str]]:
    data = {
        **start.files(),
        **parts.people(username, uid, gid, home, shell),
        **certificates.files(trusted),
    }
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
    body = wanted.object("v1", "Service", wanted.name, spec=spec)
    body["metadata"]["annotations"] = {HASH: digest_of([body, secret(wanted)])}
    return body


def publishes_jupyter(cluster: Cluster) -> bool:
    """Return True if the Service has Jupyter's port. Otherwise Berth goes to the pod's own address (`observe`)."""
    if cluster.exposure == Cluster.Exposure.LOAD_BALANCER:
        return not only_berth_opens_jupyter(cluster)
    return cluster.exposure == Cluster.Exposure.PORTAL
