"""Parts of the pods of workspaces and jobs: unprivileged, with GPUs as the pool shares them, CPU and memory as
admitted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from clusters import labels
from clusters.models import Cluster
from clusters.pods.ends import FINALIZER
from clusters.quantities import format_cpu, format_mib
from clusters.site import environment as site_environment
from clusters.site.registries import pull_secrets
from quotas import sharing
from quotas.models import Pool
from quotas.namespaces.manifests import SERVICE_ACCOUNT
from quotas.pools import selection
from quotas.sharing import PodParts
from storage.cluster.manifests import scratch
from storage.models import HOME_PATH, Kind
from workloads.models import Workload
from workloads.sizes.sizing import portion_of

from . import drivers
from .wanted import Wanted

Body = dict[str, Any]

EPHEMERAL_REQUEST_MIB = 1024
EPHEMERAL_LIMIT_MIB = 10 * 1024
ITSELF = ("localhost", "127.0.0.1", "::1")  # notebooks speak to their own server
NODE_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
EXPOSED = "berth.dev/metrics"
SCRAPED = (EXPOSED, "prometheus.io/scrape", "prometheus.io/port", "prometheus.io/path")
UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def metadata(wanted: Wanted) -> Body:
    """Labels, annotations and finalizer of a run's pods."""
    return {
        "labels": wanted.labels | {labels.RUN: str(wanted.run)},
        "annotations": {
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            **gpu_parts(wanted).annotations,
            **sharing.of(wanted.workload.pool).avoiding(wanted.bad_gpus),
            **scraped(wanted.workload),
        },
        "finalizers": [FINALIZER],
    }


def scraped(workload: Workload) -> dict[str, str]:
    """Return the annotations by which Prometheus finds the figures of a pod: those that its usual set-up follows.

    EXPOSED says that they are Berth's: a service mesh sets the same names in pods that it takes in.
    """
    at = workload.exposition
    if at is None:
        return {}
    return dict(zip(SCRAPED, (f"{at.port}{at.path}", "true", str(at.port), at.path), strict=True))


def spec(wanted: Wanted, container: Body, start_files: str, grace_seconds: int) -> Body:
    """Spec of a pod of one container. `start_files`: name of the ConfigMap with the start script."""
    workload = wanted.workload
    pool, image, cluster = workload.pool, workload.image, wanted.cluster
    body: Body = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # what runs as PID 1 reaps nothing
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": image.uid,
            "runAsGroup": image.gid,
            "fsGroup": image.gid,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "nodeAffinity": node_affinity(pool, wanted.node, wanted.unwell_nodes, wanted.only_nodes)
        },
        # Berth decides about a lost node: an eviction by a timer would let a second pod write to the same disk.
        "tolerations": [
            *pool.tolerations,
            *({"key": key, "operator": "Exists", "effect": "NoExecute"} for key in NODE_TROUBLES),
        ],
        "containers": [container],
        "volumes": volumes(wanted, start_files),
    }
    if scheduler := gpu_parts(wanted).scheduler:
        body["schedulerName"] = scheduler
    if pool.runtime_class:
        body["runtimeClassName"] = pool.runtime_class
    return body | pull_secrets(cluster, pool.image_pull_secrets)


def node_affinity(
    pool: Pool, node: str, unwell: Iterable[str] = (), only: Sequence[str] = ()
) -> dict[str, Any]:
    """Require the pool's nodes without the unwell ones; prefer the node that admission chose, or require `only` some.

    Kubernetes allows one name in a field's values, so each of several nodes is a term of its own.
    """
    affinity: dict[str, Any] = {}
    terms = selection.manifest(selection.terms(pool))
    others = [named("NotIn", name) for name in unwell]
    if only:
        terms = [
            term | {"matchFields": [named("In", name), *others]} for name in only for term in terms or [{}]
        ]
    elif others:
        terms = [term | {"matchFields": others} for term in terms or [{}]]
    if terms:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if node and not only:
        chosen = {"matchFields": [named("In", node)]}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 100, "preference": chosen}]
    return affinity


def named(operator: str, name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def environment(wanted: Wanted, ours: Mapping[str, str], of_pod: Mapping[str, str]) -> list[Body]:
    """Variables of the site, of Berth, then of the user. Launch refuses reserved names; else the user's value wins.

    `ours`: what Berth sets, for this kind of workload. `of_pod`: variables with the pod's own values, by their paths.
    """
    workload, secret = wanted.workload, wanted.secret_env
    image = workload.image
    taken = set(workload.env) | set(secret)
    of_site = site_environment.of_cluster(wanted.cluster.pod_environment, taken)
    ours = of_site | {"HOME": image.home, "USER": image.username, "SHELL": image.shell, **ours}
    if workload.repository:
        ours["BERTH_REPOSITORY"] = workload.repository
    ours |= gpu_parts(wanted).environment
    if wanted.mounts_driver:
        ours["BERTH_DRIVER"] = drivers.MOUNT_PATH
    ours |= proxy_settings(wanted.cluster, taken | set(of_site))
    entries: list[Body] = [
        {"name": name, "value": literal(value)}
        for name, value in (ours | workload.env).items()
        if name not in taken or name in workload.env
    ]
    entries += [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in of_pod.items()
    ]
    for name in sorted(secret):
        source = {"secretKeyRef": {"name": wanted.secret_name, "key": secret_env_key(name)}}
        entries.append({"name": name, "valueFrom": source})
    return entries


def proxy_settings(cluster: Cluster, taken: Set[str]) -> dict[str, str]:
    """Proxy variables in both spellings: programs read one or the other. If the user sets one, Berth sets neither."""
    settings = {"http_proxy": cluster.http_proxy, "https_proxy": cluster.https_proxy}
    if any(settings.values()):
        settings["no_proxy"] = ",".join(filter(None, [*ITSELF, cluster.no_proxy]))
    return {
        spelled: value
        for name, value in settings.items()
        if value and not {name, name.upper()} & taken
        for spelled in (name, name.upper())
    }


def literal(value: str) -> str:
    """Escape dollars: Kubernetes replaces $(NAME) in values, and every $$ by one dollar."""
    return value.replace("$", "$$")


def secret_env_key(name: str) -> str:
    return f"env.{name}"


def gpu_parts(wanted: Wanted) -> PodParts:
    """Parts of the pod that the pool's way of sharing needs."""
    return sharing.pod(wanted.workload.pool, portion_of(wanted.workload))


def resources(wanted: Wanted) -> dict[str, Any]:
    workload = wanted.workload
    devices = {**gpu_parts(wanted).resources, **{name: str(count) for name, count in wanted.extra.items()}}
    return {
        "requests": {
            "cpu": format_cpu(wanted.requested_cpu_millicores),
            "memory": format_mib(wanted.requested_memory_mib),
            "ephemeral-storage": format_mib(EPHEMERAL_REQUEST_MIB),
            **devices,
        },
        "limits": {
            "cpu": format_cpu(workload.cpu_millicores),
            "memory": format_mib(workload.memory_mib),
            "ephemeral-storage": format_mib(EPHEMERAL_LIMIT_MIB),
            **devices,
        },
    }


def mounts(wanted: Wanted) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [
        {"name": "start", "mountPath": "/berth/start", "readOnly": True},
        {"name": "secret", "mountPath": "/berth/secret", "readOnly": True},
        {"name": "start", "mountPath": "/etc/passwd", "subPath": "passwd", "readOnly": True},
        {"name": "start", "mountPath": "/etc/group", "subPath": "group", "readOnly": True},
    ]
    if not gpu_parts(wanted).brings_shm:
        entries.append({"name": "shm", "mountPath": "/dev/shm"})
    if wanted.mounts_driver:
        entries.append({"name": "driver", "mountPath": drivers.MOUNT_PATH, "readOnly": True})
    for one in wanted.mounts:
        read_only = {"readOnly": True} if one.read_only else {}
        path = wanted.workload.image.home if one.path == HOME_PATH else one.path
        entries.append({"name": one.volume.object_name, "mountPath": path} | read_only)
    return entries


def volumes(wanted: Wanted, start_files: str) -> list[dict[str, Any]]:
    """Volumes of the pod. /dev/shm is memory within the container's limit: 64 MiB of it kill PyTorch's data loaders."""
    entries: list[dict[str, Any]] = [
        {"name": "start", "configMap": {"name": start_files, "defaultMode": 0o555}},
        {"name": "secret", "secret": {"secretName": wanted.secret_name, "defaultMode": 0o440}},
    ]
    if not gpu_parts(wanted).brings_shm:
        memory = {"medium": "Memory", "sizeLimit": format_mib(wanted.workload.memory_mib // 2)}
        entries.append({"name": "shm", "emptyDir": memory})
    if wanted.mounts_driver:
        claim = {"claimName": drivers.claim_name(wanted.workload.pool), "readOnly": True}
        entries.append({"name": "driver", "persistentVolumeClaim": claim})
    for one in wanted.mounts:
        claim = {"claimName": one.volume.object_name} | ({"readOnly": True} if one.read_only else {})
        is_scratch = one.volume.kind == Kind.SCRATCH
        source = scratch(one.volume) if is_scratch else {"persistentVolumeClaim": claim}
        entries.append({"name": one.volume.object_name} | source)
    return entries


def people(username: str, uid: int, gid: int, home: str, shell: str) -> Body:
    """Files with the container's users and groups. A uid needs a name, or SSH refuses the login."""
    return {
        "passwd": (
            "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"{username}:x:{uid}:{gid}:{username}:{home}:{shell}\n"
            "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "group": f"root:x:0:\n{username}:x:{gid}:\nnogroup:x:65534:\n",
    }
