"""Defaults that the API server fills in before it stores an object, by kind."""

import base64
import random
from collections.abc import Callable

from devcluster.access import roles
from devcluster.errors import bad_request
from devcluster.resources import Kind, Obj
from devcluster.values.clock import now
from devcluster.values.quantity import canonical


def fill(kind: Kind, obj: Obj) -> None:
    """Complete a new or changed object in place; the author of the object owns the defaults too."""
    if default := _DEFAULTS.get(kind.kind):
        default(obj)


def allocate(kind: Kind, obj: Obj) -> None:
    """Set the members of a new object that only the API server can set; nobody owns these."""
    if give := _ALLOCATIONS.get(kind.kind):
        give(obj)


def pod_spec(spec: Obj) -> None:
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        _container(container)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    if account := spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", account)
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for volume in spec.get("volumes", []):
        _volume(volume)


def _container(container: Obj) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    tag = container.get("image", "").rpartition("/")[2]
    latest = (":" not in tag and "@" not in tag) or tag.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for env in container.get("env", []):
        if ref := (env.get("valueFrom") or {}).get("fieldRef"):
            ref.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            _probe(probe)
    resources = container["resources"]
    for part in ("limits", "requests"):
        if part in resources:
            resources[part] = {k: _quantity(v) for k, v in resources[part].items()}


def _probe(probe: Obj) -> None:
    defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    for key, value in defaults.items():
        probe.setdefault(key, value)
    if http := probe.get("httpGet"):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _volume(volume: Obj) -> None:
    sources = {"secret", "configMap", "projected", "downwardAPI"} & set(volume)
    for source in sources:
        volume[source].setdefault("defaultMode", 420)
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def _quantity(value: object) -> str:
    try:
        return canonical(str(value))
    except ValueError as error:
        raise ValueError(str(error)) from error


def _limits_become_requests(spec: Obj) -> None:
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        resources = container["resources"]
        for name, value in resources.get("limits", {}).items():
            resources.setdefault("requests", {}).setdefault(name, value)


def _pod(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    _limits_become_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _template(obj: Obj) -> Obj:
    spec: Obj = obj.setdefault("spec", {})
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))
    return spec


def _stateful_set(obj: Obj) -> None:
    spec = _template(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")
    status = obj.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def _replica_set(obj: Obj) -> None:
    _template(obj).setdefault("replicas", 1)
    obj.setdefault("status", {}).setdefault("replicas", 0)


def _deployment(obj: Obj) -> None:
    spec = _template(obj)
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    obj.setdefault("status", {})


_NO_LIMIT = 2**31 - 1


def _job(obj: Obj) -> None:
    spec = _template(obj)
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            pattern.setdefault("status", "True")
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    obj.setdefault("status", {})


def _job_labels(obj: Obj) -> None:
    """Make a Job select its pods by its own uid."""
    meta, spec = obj["metadata"], obj["spec"]
    if spec["manualSelector"]:
        return
    names = {"controller-uid": meta["uid"], "job-name": meta.get("name", "")}
    labels = names | {f"batch.kubernetes.io/{k}": v for k, v in names.items()}
    meta["labels"] = (meta.get("labels") or {}) | labels
    template = spec["template"]["metadata"]
    template["labels"] = (template.get("labels") or {}) | labels
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}})


def _service(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if kind in ("LoadBalancer", "NodePort"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _service_addresses(obj: Obj) -> None:
    spec = obj["spec"]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = f"10.96.{random.randint(1, 254)}.{random.randint(1, 254)}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _claim(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    _data_source(spec)
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _data_source(spec: Obj) -> None:
    """Copy the data source between its older and newer member; the older supports only claims and snapshots."""
    older = spec.get("dataSource") or {}
    if older and not older.get("apiGroup") and older.get("kind") != "PersistentVolumeClaim":
        del spec["dataSource"]
    if source := spec.get("dataSource") or spec.get("dataSourceRef"):
        source.setdefault("apiGroup", None)
        for member in ("dataSource", "dataSourceRef"):
            spec.setdefault(member, dict(source))


def _volume_object(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    status = obj.setdefault("status", {})
    if "phase" not in status:
        status |= {"phase": "Pending", "lastPhaseTransitionTime": now()}


def _protection(name: str) -> Callable[[Obj], None]:
    def give(obj: Obj) -> None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if name not in finalizers:
            finalizers.append(name)

    return give


def _storage_class(obj: Obj) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _priority_class(obj: Obj) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _secret(obj: Obj) -> None:
    for key, value in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
    for value in (obj.get("data") or {}).values():
        try:
            base64.b64decode(value or "", validate=True)
        except ValueError as error:
            raise bad_request(
                'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0'
            ) from error
    obj.setdefault("type", "Opaque")


def _namespace(obj: Obj) -> None:
    meta = obj["metadata"]
    if "name" in meta:
        meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _namespace_finalizer(obj: Obj) -> None:
    obj.setdefault("spec", {})["finalizers"] = ["kubernetes"]


def _quota(obj: Obj) -> None:
    hard = obj.setdefault("spec", {}).get("hard", {})
    for key, value in hard.items():
        hard[key] = _quantity(value)
    obj.setdefault("status", {})


_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _node(obj: Obj) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status.setdefault("nodeInfo", dict.fromkeys(_NODE_INFO, ""))


_DEFAULTS: dict[str, Callable[[Obj], None]] = {
    "Pod": _pod,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replica_set,
    "Deployment": _deployment,
    "Job": _job,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume_object,
    "StorageClass": _storage_class,
    "PriorityClass": _priority_class,
    "Secret": _secret,
    "Namespace": _namespace,
    "Node": _node,
    "ResourceQuota": _quota,
    "RoleBinding": roles.fill_binding,
    "ClusterRoleBinding": roles.fill_binding,
}
_ALLOCATIONS: dict[str, Callable[[Obj], None]] = {
    "Job": _job_labels,
    "Service": _service_addresses,
    "PersistentVolumeClaim": _protection("kubernetes.io/pvc-protection"),
    "PersistentVolume": _protection("kubernetes.io/pv-protection"),
    "Namespace": _namespace_finalizer,
}
