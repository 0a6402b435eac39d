"""The Job of a test and its namespace: no root, no rights, no network. Pure: from rows to Kubernetes objects.

The Job ends and is deleted by itself, whatever happens to Berth.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from clusters import labels
from clusters.quantities import format_cpu, format_mib
from clusters.references import complete
from clusters.site.registries import pull_secrets
from monitoring.models import Validation
from quotas import sharing
from quotas.models import Claim, Pool
from quotas.sharing import Portion

CONTAINER = "test"
UID = 1000
CPU_MILLICORES, MEMORY_MIB = 100, 512
MEMORY_LIMIT_MIB = 2048  # CUDA maps this much at its start
DEADLINE_SECONDS = 300
# Longer than Berth's own deadline, so that Berth can still read from the pod what kept it.
JOB_DEADLINE_SECONDS = DEADLINE_SECONDS + 60
KEPT_SECONDS = 600


def portion_of(pool: Pool) -> Portion:
    """Return the smallest portion of a GPU that the pool gives."""
    strategy = sharing.of(pool)
    return strategy.of_units(pool, next(iter(strategy.parts(pool)), 1))


def parts_of(pool: Pool) -> sharing.PodParts:
    return sharing.pod(pool, portion_of(pool))


def asked(pool: Pool) -> Claim:
    """Return an unsaved claim with what the test takes."""
    return Claim(pool=pool, cpu_millicores=CPU_MILLICORES, memory_mib=MEMORY_MIB, **asdict(portion_of(pool)))


def common(instance: UUID) -> dict[str, str]:
    return {labels.MANAGED_BY: labels.MANAGER, labels.INSTANCE: str(instance)}


def name_of(validation: Validation) -> str:
    return f"gpu-test-{validation.pk}"


def namespace(instance: UUID) -> str:
    """Return the installation's namespace for tests. It is no tenant's: their slugs do not begin with a dash."""
    return f"berth--tests-{instance.hex[:8]}"


def place(instance: UUID) -> list[dict[str, Any]]:
    """Return the namespace, then its network policy."""
    name = namespace(instance)
    modes = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    own = common(instance)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own | modes}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "berth", "namespace": name, "labels": own},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        },
    ]


def job(validation: Validation, pool: Pool, instance: UUID) -> dict[str, Any]:
    own = common(instance) | {labels.VALIDATION: str(validation.pk)}
    parts = parts_of(pool)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name_of(validation), "namespace": namespace(instance), "labels": own},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": JOB_DEADLINE_SECONDS,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {"labels": own, "annotations": dict(parts.annotations)},
                "spec": pod_spec(validation, pool),
            },
        },
    }


def pod_spec(validation: Validation, pool: Pool) -> dict[str, Any]:
    parts = parts_of(pool)
    on_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [validation.node]}]}
    body: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node]}
            }
        },
        "tolerations": [
            *pool.tolerations,
            # A closed node is the one to test before it is opened again.
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "containers": [
            {
                "name": CONTAINER,
                "image": complete(validation.image),
                "imagePullPolicy": "IfNotPresent",
                "env": [{"name": name, "value": value} for name, value in parts.environment.items()],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "resources": {
                    "requests": {
                        "cpu": format_cpu(CPU_MILLICORES),
                        "memory": format_mib(MEMORY_MIB),
                        **parts.resources,
                    },
                    "limits": {"memory": format_mib(MEMORY_LIMIT_MIB), **parts.resources},
                },
            }
        ],
    }
    if parts.scheduler:
        body["schedulerName"] = parts.scheduler
    if pool.runtime_class:
        body["runtimeClassName"] = pool.runtime_class
    return body | pull_secrets(pool.cluster, pool.image_pull_secrets)
