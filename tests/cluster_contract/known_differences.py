"""Where devcluster still answers otherwise than Kubernetes 1.36 did, and why. Nothing else may differ.

A place is a path in an answer, `*` standing for anything. The list is held to both ways: a difference that is not
listed fails, and so does an entry that no longer differs.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    why: str
    places: dict[str, dict[str, tuple[str, ...]]]
    """Scenario → note → paths."""


_WHOLE = ("*",)
_KUBELET = (
    "body.metadata.managedFields[Python Update status]",
    "body.metadata.managedFields[kubelet Update status]",
    "body.status.conditions[*].observedGeneration",
    "body.status.conditions[PodReadyToStartContainers]",
    "body.status.containerStatuses[main].imageID",
    "body.status.containerStatuses[main].containerID",
    "body.status.containerStatuses[main].image",
    "body.status.containerStatuses[main].resources",
    "body.status.containerStatuses[main].allocatedResources",
    "body.status.observedGeneration",
    "body.status.hostIPs",
)
_BALANCER = (
    "body.metadata.managedFields[Python Update status]",
    "body.metadata.managedFields[kube-controller-manager Update status]",
)
_GROUPS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
)
_RESOURCES = (
    "bindings",
    "componentstatuses",
    "endpoints",
    "nodes/proxy",
    *(f"pods/{name}" for name in ("ephemeralcontainers", "proxy", "resize")),
    "podtemplates",
    "replicationcontrollers*",
    "services/proxy",
)
_GO_DIFF = ("body.message", "body.details.causes[spec].message")

DIFFERENCES = (
    Difference(
        "The recording's nodes had no kubelet: a script wrote the pods' status, under its own name, and told no"
        " events. devcluster's says what a kubelet says.",
        {
            "statefulset": {
                "its pod": _KUBELET,
                "its pod deleted by hand: the next comes only once it is gone": (
                    "events[MODIFIED ws-0*",
                    "events[DELETED ws-0].object.metadata.managedFields*",
                    "events[DELETED ws-0].object.status.*",
                ),
            },
            "scheduling": {
                "fits: the pod": _KUBELET,
                "fits: its events": tuple(f"body.items[fits {r}]" for r in ("Pulled", "Created", "Started")),
                "delete with grace": _KUBELET,
                "log of a pod whose node does not answer": _WHOLE,
            },
            "workloads": {"its pod": tuple(at.replace("body", "body.items[web-*]", 1) for at in _KUBELET)},
        },
    ),
    Difference(
        "The recording's load balancer was a script that wrote the address under its own name.",
        {"services": {"with its address": _BALANCER, "delete": _BALANCER}},
    ),
    Difference(
        "Kinds and subresources that Berth does not need are not there.",
        {
            "discovery": {
                "discovery /apis": tuple(f"body.groups[{name}]" for name in _GROUPS),
                "discovery /api/v1": tuple(f"body.resources[{name}]" for name in _RESOURCES),
                "discovery /apis/batch/v1": ("body.resources[cronjobs*]",),
            }
        },
    ),
    Difference(
        "Volume snapshots are served; the recorded cluster had no such custom resources.",
        {"discovery": {"discovery /apis": ("body.groups[snapshot.storage.k8s.io]",)}},
    ),
    Difference(
        "It says that it is not the real one.",
        {"discovery": {"discovery /version": ("body.gitCommit",)}},
    ),
    Difference(
        "The emptying of a namespace begins at once here; the recorded one had not got to this object yet.",
        {
            "namespaces": {
                "let go": ("body.metadata.deletionTimestamp", "body.metadata.deletionGracePeriodSeconds")
            }
        },
    ),
    Difference(
        "Controllers act at once here; the recorded ones had not got to these workloads yet.",
        {
            "statefulset": {
                "applied while it is being deleted: accepted, and lost": ("body.status.observedGeneration",)
            },
            "apply": {
                "kubectl-like scale by another": ("body.status.replicas",),
                "apply without replicas leaves them": (
                    "body.metadata.annotations",
                    "body.metadata.managedFields[kube-controller-manager Update status]",
                    "body.status.*",
                ),
            },
        },
    ),
    Difference(
        "Go's picture of a value, or of a difference, is not drawn in messages; what precedes it is the same.",
        {
            "pods": {"a pod's spec is immutable": _GO_DIFF},
            "workloads": {
                "parallelism can change, completions cannot": (
                    "body.message",
                    "body.details.causes[spec.template].message",
                )
            },
            "volumes": {"unbound claims cannot grow": _GO_DIFF, "change the class": _GO_DIFF},
        },
    ),
    Difference(
        "Columns of tables are not described.",
        {"reading": {"as a table": ("body.columnDefinitions[*].description",)}},
    ),
)


def listed(scenario: str) -> dict[str, tuple[str, ...]]:
    """The places of a scenario that are known to differ, by note."""
    found: dict[str, tuple[str, ...]] = {}
    for difference in DIFFERENCES:
        for note, paths in difference.places.get(scenario, {}).items():
            found[note] = found.get(note, ()) + paths
    return found
