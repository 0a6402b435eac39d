"""Pods of a StatefulSet and their claims, by number, and the next step of the set. Decisions only."""

from dataclasses import dataclass, field

from devcluster.controllers.workloads.base import pod_from
from devcluster.controllers.workloads.ownership import reference_to
from devcluster.controllers.workloads.replicas import available, ended, going, phase, ready
from devcluster.resources import POD, STATEFUL_SET, Obj
from devcluster.store import clone

REVISION = "controller-revision-hash"
NAME = "statefulset.kubernetes.io/pod-name"
INDEX = "apps.kubernetes.io/pod-index"


@dataclass
class Step:
    """Actions of this step; the next step depends on their result."""

    create: list[int] = field(default_factory=list)
    delete: list[Obj] = field(default_factory=list)


def ordinal_of(workload: Obj, pod: Obj) -> int | None:
    text = pod["metadata"]["name"].removeprefix(f"{workload['metadata']['name']}-")
    return int(text) if text.isdigit() and str(int(text)) == text else None


def wanted(workload: Obj) -> range:
    spec = workload["spec"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    return range(first, first + spec["replicas"])


def in_order(workload: Obj) -> bool:
    return bool(workload["spec"]["podManagementPolicy"] == "OrderedReady")


def running_and_ready(pod: Obj) -> bool:
    return phase(pod) == "Running" and ready(pod)


def serving(workload: Obj, pod: Obj) -> bool:
    """Return True if the pod has been ready for `minReadySeconds`."""
    return running_and_ready(pod) and available(pod, workload["spec"].get("minReadySeconds", 0))


def revision_of(pod: Obj) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION, ""))


def next_step(workload: Obj, pods: dict[int, Obj], update: str) -> Step:
    """Return the next step: create, replace, remove, update, one pod at a time unless the policy is Parallel."""
    step = Step()
    for ordinal in wanted(workload):
        pod = pods.get(ordinal)
        if pod is None:
            step.create.append(ordinal)
        elif ended(pod) and not going(pod):
            step.delete.append(pod)
        elif not going(pod) and serving(workload, pod):
            continue
        if in_order(workload):
            return step  # the result of this step triggers the next reconcile
    condemned = [pods[o] for o in sorted(pods, reverse=True) if o not in wanted(workload)]
    if not in_order(workload):
        step.delete += [p for p in condemned if not going(p)]
    elif condemned:
        step.delete += _first_to_go(workload, condemned)
        return step
    _update(workload, pods, update, step)
    return step


def _first_to_go(workload: Obj, condemned: list[Obj]) -> list[Obj]:
    """Return the highest number, unless it is already being deleted or a lower one is unwell too and goes first."""
    first = condemned[0]
    unwell = [p for p in reversed(condemned) if going(p) or not serving(workload, p)]
    return [] if going(first) or (unwell and first in unwell and first is not unwell[0]) else [first]


def _update(workload: Obj, pods: dict[int, Obj], update: str, step: Step) -> None:
    """Delete the highest pod of an old template, once all pods above it serve."""
    strategy = workload["spec"]["updateStrategy"]
    if strategy["type"] != "RollingUpdate":
        return
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    span = wanted(workload)
    for ordinal in reversed(span[partition:]):
        pod = pods.get(ordinal)
        if pod is None or pod in step.delete:
            return
        if revision_of(pod) != update and not going(pod):
            step.delete.append(pod)
            return
        if going(pod) or not serving(workload, pod):
            return


def keeps_current(workload: Obj, ordinal: int) -> bool:
    """Return True if a new pod of this number still gets the template from before the update."""
    strategy = workload["spec"]["updateStrategy"]
    if strategy["type"] != "RollingUpdate":
        return False
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    return bool(ordinal < wanted(workload).start + partition)


def new_pod(workload: Obj, ordinal: int, template: Obj, revision: str) -> Obj:
    meta, spec = workload["metadata"], workload["spec"]
    pod = pod_from(STATEFUL_SET, workload, template)
    name = f"{meta['name']}-{ordinal}"
    pod["metadata"] |= {"name": name}
    own = {INDEX: str(ordinal), REVISION: revision, NAME: name}
    pod["metadata"]["labels"] = pod["metadata"].get("labels", {}) | own
    pod["spec"]["hostname"] = name
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    claims = {t["metadata"]["name"]: claim_name(workload, t, ordinal) for t in templates(workload)}
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": c}} for n, c in sorted(claims.items())]
    volumes += [v for v in pod["spec"].get("volumes", []) if v["name"] not in claims]
    if volumes:
        pod["spec"]["volumes"] = volumes
    return pod


def templates(workload: Obj) -> list[Obj]:
    found: list[Obj] = workload["spec"].get("volumeClaimTemplates") or []
    return found


def claim_name(workload: Obj, template: Obj, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{workload['metadata']['name']}-{ordinal}"


def new_claim(workload: Obj, template: Obj, ordinal: int) -> Obj:
    meta = template["metadata"]
    labels = (meta.get("labels") or {}) | (workload["spec"]["selector"].get("matchLabels") or {})
    about = {"name": claim_name(workload, template, ordinal), "labels": labels}
    if meta.get("annotations"):
        about["annotations"] = meta["annotations"]
    return dict(clone({"metadata": about, "spec": template["spec"]}))


def claim_owners(workload: Obj, pod: Obj, claim: Obj) -> list[Obj]:
    """Return the claim's owner references by the retention policy; keep references of others."""
    policy = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    uids = (workload["metadata"]["uid"], pod["metadata"]["uid"])
    refs = [r for r in claim["metadata"].get("ownerReferences", []) if r["uid"] not in uids]
    if any(r.get("controller") for r in refs):
        return refs
    scaled_away = ordinal_of(workload, pod) not in wanted(workload)
    if scaled_away and policy.get("whenScaled") == "Delete":
        return [*refs, _controlling(reference_to(POD, pod))]
    if policy.get("whenDeleted") == "Delete":
        return [*refs, _controlling(reference_to(STATEFUL_SET, workload))]
    return refs


def _controlling(reference: Obj) -> Obj:
    return reference | {"controller": True, "blockOwnerDeletion": True}


def is_stale(pod_name: str, claim: Obj) -> bool:
    """Return True if the claim is deleted with an earlier pod of this name, so that no new pod may use it."""
    return any(
        r["kind"] == "Pod" and r["name"] == pod_name for r in claim["metadata"].get("ownerReferences", [])
    )


def next_status(workload: Obj, pods: list[Obj], current: str, update: str) -> Obj:
    spec = workload["spec"]
    staying = [p for p in pods if not going(p)]
    updated = sum(revision_of(p) == update for p in staying)
    counts = {
        "readyReplicas": sum(map(running_and_ready, pods)),
        "currentReplicas": sum(revision_of(p) == current for p in staying),
        "updatedReplicas": updated,
    }
    whole = (updated, counts["readyReplicas"], len(pods)) == (spec["replicas"],) * 3
    if whole and spec["updateStrategy"]["type"] == "RollingUpdate":
        current, counts["currentReplicas"] = update, updated
    return {
        "observedGeneration": workload["metadata"]["generation"],
        "replicas": len(pods),
        **{k: v for k, v in counts.items() if v},
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
        "availableReplicas": sum(serving(workload, p) for p in pods),
    }
