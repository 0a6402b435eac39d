"""Scale subresource: a workload's replicas and nothing else."""

from devcluster.resources import Kind, Obj

SCALE = Kind("autoscaling", "v1", "Scale", "scales")
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(workload: Obj) -> Obj:
    meta = {k: v for k, v in workload["metadata"].items() if k in _META}
    labels = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
    replicas = workload["spec"].get("replicas", 0)
    status = {"replicas": workload.get("status", {}).get("replicas", 0), "selector": selector}
    body = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta}
    return body | {"spec": {"replicas": replicas} if replicas else {}, "status": status}


def with_replicas(workload: Obj, scale: Obj) -> Obj:
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    meta = workload["metadata"] | ({"resourceVersion": version} if version else {})
    return workload | {"metadata": meta, "spec": workload["spec"] | {"replicas": replicas}}
