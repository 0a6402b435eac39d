"""Namespaces and Jobs of a proof. Pure: the objects that any tenant gets, and two small pods under `restricted`.

The namespaces stay, empty, as Berth has no right to delete namespaces. The Jobs end and are deleted by themselves,
whatever happens to Berth.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters import labels
from clusters.models import Cluster
from clusters.references import complete
from clusters.site.registries import pull_secrets
from monitoring.models import IsolationProof
from quotas.namespaces import manifests as tenancy

LISTENER, TRIER = "a", "b"
SIDES = (LISTENER, TRIER)
CONTAINER = "proof"
PORTS = (tenancy.JUPYTER_PORT, tenancy.SSH_PORT)
JOB_SECONDS = 420
KEPT_SECONDS = 60
PROGRAM = (Path(__file__).parent / "program.py").read_text()
OPEN = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]}
# Kubernetes' own name: whatever a name server says about it, it answered.
RESOLVED = "kubernetes.default.svc"


def tenant(side: str, instance: UUID) -> Tenant:
    """Return a tenant that is in no table: slugs of real ones have 40 characters at most."""
    return Tenant(slug=f"isolation-proof-{side}-{instance.hex}", name="Proof")


def namespaces(instance: UUID) -> set[str]:
    return {tenant(side, instance).namespace for side in SIDES}


def place(side: str, cluster: Cluster, instance: UUID, *, policed: bool) -> list[dict[str, Any]]:
    """Return what a tenant gets before its first pod; if not `policed`, with a NetworkPolicy that allows all."""
    bodies = tenancy.objects(tenant(side, instance), cluster, instance, {})
    return [
        body | {"spec": OPEN} if body["kind"] == "NetworkPolicy" and not policed else body
        for body in bodies
        if body["kind"] not in ("RoleBinding", "Secret")  # the watcher brings what images are pulled with
    ]


def policies(cluster: Cluster, instance: UUID) -> list[dict[str, Any]]:
    bodies = (body for side in SIDES for body in place(side, cluster, instance, policed=True))
    return [body for body in bodies if body["kind"] == "NetworkPolicy"]


def own(proof: IsolationProof, instance: UUID) -> dict[str, str]:
    return {
        labels.MANAGED_BY: labels.MANAGER,
        labels.INSTANCE: str(instance),
        labels.VALIDATION: str(proof.pk),
    }


def name_of(proof: IsolationProof) -> str:
    return f"isolation-proof-{proof.pk}"


def job(proof: IsolationProof, side: str, instance: UUID, wish: dict[str, Any]) -> dict[str, Any]:
    """Return the Job of one side. `wish`: what its program is told."""
    common = own(proof, instance)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name_of(proof),
            "namespace": tenant(side, instance).namespace,
            "labels": common,
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": JOB_SECONDS,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": common}, "spec": pod_spec(proof, wish)},
        },
    }


def pod_spec(proof: IsolationProof, wish: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": tenancy.SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": proof.uid,
            "runAsGroup": proof.uid,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": complete(proof.image),
                "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-u", "-c", PROGRAM],
                "env": [
                    {"name": "BERTH_PROOF", "value": json.dumps(wish)},
                    # A name server that is out of reach must not hold up a round.
                    {"name": "RES_OPTIONS", "value": "timeout:1 attempts:1"},
                ],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "resources": {
                    "requests": {"cpu": "50m", "memory": "64Mi"},
                    "limits": {"cpu": "500m", "memory": "128Mi"},
                },
            }
        ],
    }
    return body | pull_secrets(proof.cluster)
