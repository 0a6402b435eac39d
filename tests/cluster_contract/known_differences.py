"""Answers in which devcluster still differs from Kubernetes 1.36, and why. Nothing else may differ.

packages/devcluster/docs/reference.md lists them for people, in the same words. A place is a path in an answer; `*`
stands for anything.
The tests fail for a difference that is not listed, and for an entry that no longer differs.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    why: str
    places: dict[str, dict[str, tuple[str, ...]]]
    """Scenario → note → paths."""


_GROUPS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
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
_PICTURES = ("body.message.(picture)", "body.details.causes[spec*].message.(picture)")

DIFFERENCES = (
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
        "Metrics are served; the recorded cluster had no metrics-server.",
        {"discovery": {"discovery /apis": ("body.groups[metrics.k8s.io]",)}},
    ),
    Difference(
        "MetalLB's pools of addresses are served; the recorded cluster had no such custom resources.",
        {"discovery": {"discovery /apis": ("body.groups[metallb.io]",)}},
    ),
    Difference(
        "A namespace is emptied at once here; the real controller waits some seconds before it begins.",
        {
            "namespaces": {
                "let go": ("body.metadata.deletionTimestamp", "body.metadata.deletionGracePeriodSeconds")
            }
        },
    ),
    Difference(
        "Go's picture of a value or of a difference is drawn otherwise or not at all; the words are the same.",
        {
            "pods": {"a pod's spec is immutable": _PICTURES},
            "workloads": {"parallelism can change, completions cannot": _PICTURES},
            "volumes": {"unbound claims cannot grow": _PICTURES, "change the class": _PICTURES},
        },
    ),
    Difference(
        "Columns of tables are not described.",
        {"reading": {"as a table": ("body.columnDefinitions[*].description",)}},
    ),
)


def listed(scenario: str) -> dict[str, tuple[str, ...]]:
    """Return the places of a scenario that are known to differ, by note."""
    found: dict[str, tuple[str, ...]] = {}
    for difference in DIFFERENCES:
        for note, paths in difference.places.get(scenario, {}).items():
            found[note] = found.get(note, ()) + paths
    return found
