"""Pod that makes a node pull an image. Pure.

It has no GPU and requests nothing, so it takes no room from anybody: where even that does not fit, it is left. It runs
`true`, not the image's own program, and is deleted once the image is there.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from clusters import labels
from clusters.labels import digest_of
from clusters.references import complete
from clusters.site.registries import pull_secrets
from quotas import sharing
from quotas.namespaces.manifests import SERVICE_ACCOUNT, tenant_labels
from quotas.sharing import Portion
from workloads.pods.parts import UNPRIVILEGED, node_affinity
from workspaces.models import WarmImage

DEADLINE_SECONDS = 30 * 60  # for images of tens of GB
# Zeros, as a namespace's LimitRange fills in what is left out.
RESOURCES = {
    "requests": {"cpu": "0", "memory": "0", "ephemeral-storage": "0"},
    "limits": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
}


def name_of(row: WarmImage) -> str:
    """Return the pod's name, which can be taken once. It follows from what is pulled where, so a second is refused."""
    return f"warm-{digest_of([str(row.booking_id), row.image.reference, row.node])}"


def pod(row: WarmImage, instance: UUID) -> dict[str, Any]:
    booking, image = row.booking, row.image
    pool = booking.pool
    spec: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": image.uid,
            "runAsGroup": image.gid,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"nodeAffinity": node_affinity(pool, "", only=[row.node])},
        "tolerations": list(pool.tolerations),
        "containers": [
            {
                "name": "pull",
                "image": complete(image.reference),
                "imagePullPolicy": "IfNotPresent",
                "command": ["true"],
                "env": [
                    {"name": name, "value": value}
                    for name, value in sharing.pod(pool, Portion()).environment.items()
                ],
                "securityContext": UNPRIVILEGED,
                "resources": RESOURCES,
            }
        ],
    }
    if pool.runtime_class:  # a runtime may keep images of its own
        spec["runtimeClassName"] = pool.runtime_class
    spec |= pull_secrets(pool.cluster, pool.image_pull_secrets)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(row),
            "namespace": booking.tenant.namespace,
            "labels": tenant_labels(booking.tenant, instance) | {labels.WARMS: str(booking.pk)},
        },
        "spec": spec,
    }
