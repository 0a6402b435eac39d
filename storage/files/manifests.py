"""Kubernetes objects of a files session, as dicts: pod, Secret, ConfigMap with the program, and a Service. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from clusters import labels
from clusters.labels import digest_of
from clusters.models import Cluster
from clusters.own_place import is_inside
from clusters.pods.ends import FINALIZER
from clusters.references import complete
from clusters.site.registries import pull_secrets
from quotas.models import Pool
from quotas.namespaces.manifests import JUPYTER_PORT, SERVICE_ACCOUNT, tenant_labels
from quotas.pools import selection
from storage.models import FilesSession

from .pod import files

# The fences of a tenant's namespace let Berth in at this port already.
PORT = JUPYTER_PORT
PREFIX = "berth-files-"  # names of the ConfigMaps with the program
FOLDER, TOKEN = "/volume", "/berth/secret/token"
GRACE_SECONDS = 5
NODE_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
}


def pod(session: FilesSession, pools: Sequence[Pool], instance: UUID) -> dict[str, Any]:
    """Pod of the session, on a node that workspaces may use. Its name is taken once; it goes when its end was seen."""
    cluster = session.volume.cluster
    user = cluster.files_uid
    claim = {"claimName": session.volume.object_name} | ({} if session.writes else {"readOnly": True})
    spec: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # Berth decides about a lost node: an eviction by a timer would let a run write to the same disk.
        "tolerations": [
            *tolerations(pools),
            *({"key": key, "operator": "Exists", "effect": "NoExecute"} for key in NODE_TROUBLES),
        ],
        "containers": [container(session)],
        "volumes": [
            {"name": "program", "configMap": {"name": program_name(), "defaultMode": 0o555}},
            {"name": "secret", "secret": {"secretName": session.object_name, "defaultMode": 0o440}},
            {"name": "volume", "persistentVolumeClaim": claim},
        ],
    }
    if terms := node_terms(pools):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    spec |= pull_secrets(cluster, *(pool.image_pull_secrets for pool in pools))
    body = _object(session, instance, "Pod", session.object_name, spec=spec)
    body["metadata"]["finalizers"] = [FINALIZER]
    return body


def container(session: FilesSession) -> dict[str, Any]:
    command = ["python3", "-m", "files.server", FOLDER, TOKEN]
    probe = {"httpGet": {"path": "/ready", "port": PORT}, "periodSeconds": 1, "failureThreshold": 30}
    if session.inspects:
        return _container(session, ["python3", "-m", "files.about", FOLDER])
    return _container(session, command if session.writes else [*command, "--read-only"]) | {
        "readinessProbe": probe
    }


def _container(session: FilesSession, command: list[str]) -> dict[str, Any]:
    return {
        "name": "files",
        "image": complete(session.volume.cluster.files_image),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": [
            {"name": "PYTHONPATH", "value": "/berth"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": "files", "containerPort": PORT, "protocol": "TCP"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": RESOURCES,
        "volumeMounts": [
            {"name": "program", "mountPath": "/berth/files", "readOnly": True},
            {"name": "secret", "mountPath": "/berth/secret", "readOnly": True},
            {"name": "volume", "mountPath": FOLDER} | ({} if session.writes else {"readOnly": True}),
        ],
    }


def tolerations(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """Return what the pools tolerate: a local disk may lie on a node for GPUs alone."""
    found: list[dict[str, Any]] = []
    for one in (one for pool in pools for one in pool.tolerations):
        if one not in found:
            found.append(one)
    return found


def node_terms(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """Return terms for the nodes of all pools; none if a pool has every node."""
    each = [selection.manifest(selection.terms(pool)) for pool in pools]
    found: list[dict[str, Any]] = []
    for term in (term for terms in each for term in terms):
        if term not in found:
            found.append(term)
    return found if all(term["matchExpressions"] for term in found) and all(each) else []


def secret(session: FilesSession, token: str, instance: UUID) -> dict[str, Any]:
    data = {"token": base64.b64encode(token.encode()).decode()}
    return _object(session, instance, "Secret", session.object_name, type="Opaque", data=data)


def program_name() -> str:
    return f"{PREFIX}{digest_of(files())}"


def program_map(session: FilesSession, instance: UUID) -> dict[str, Any]:
    """ConfigMap with the program, one for all sessions of a namespace. It is named after its content."""
    body = _object(session, instance, "ConfigMap", program_name(), data=dict(files()), immutable=True)
    body["metadata"]["labels"] = tenant_labels(session.volume.tenant, instance)
    return body


def needs_service(cluster: Cluster) -> bool:
    """Return True if Berth does not reach pods at their own addresses: it is outside, and workspaces have theirs."""
    return cluster.exposure == Cluster.Exposure.LOAD_BALANCER and not is_inside(cluster)


def service(session: FilesSession, instance: UUID) -> dict[str, Any]:
    spec = {
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False,
        "selector": {labels.FILES: str(session.pk)},
        "ports": [{"name": "files", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
    }
    return _object(session, instance, "Service", session.object_name, spec=spec)


def _object(session: FilesSession, instance: UUID, kind: str, name: str, **body: Any) -> dict[str, Any]:
    volume = session.volume
    own = {labels.VOLUME: str(volume.pk), labels.FILES: str(session.pk)}
    metadata = {
        "name": name,
        "namespace": volume.tenant.namespace,
        "labels": tenant_labels(volume.tenant, instance) | own,
    }
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}
