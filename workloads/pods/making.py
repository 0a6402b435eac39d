"""Make what pods of workspaces and jobs need in the cluster, and explain what it refuses."""

from __future__ import annotations

from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.storage.volumes import free_for
from workloads import images
from workloads.models import Image

from . import drivers
from .troubles import Blocked, Outcome, Trouble, explain_trouble
from .wanted import Wanted

# Refusals that pass without help, when other pods end or a namespace is gone. Any other refusal is final.
PASSING_REFUSALS = ("exceeded quota", "being terminated", "object is being deleted")


def refused(refusal: ClusterRefused) -> Trouble:
    return explain_refusal(refusal.message, passes=refusal.status == 409)


def explain_refusal(message: str, *, passes: bool = False) -> Trouble:
    """Explain what the cluster, or one of its controllers, said when it refused a pod."""
    if passes or any(words in message for words in PASSING_REFUSALS):
        return explain_trouble("admission", message, Outcome.REQUEUE, 120)
    return explain_trouble("admission", message, Outcome.FAIL)


def refuse_image(image: Image) -> None:
    """Raise Blocked for an image by reference that its tenant may not use any more. What runs is not asked."""
    if not images.is_allowed(image):
        raise Blocked(images.CODE, Outcome.FAIL, reference=image.reference)


def make_driver_volume(wanted: Wanted, mirror: Mirror) -> None:
    """Create the driver's volume and PVC in a pool of old nodes. Without them, the pod would not be scheduled."""
    if not wanted.mounts_driver:
        return
    volume, claim = drivers.objects(wanted.workload.pool, wanted.workload.tenant, wanted.instance)
    name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
    there = mirror.get("PersistentVolumeClaim", namespace, name)
    if there is not None and there.get("status", {}).get("phase") == "Bound":
        return
    reference = mirror.apply(volume)["spec"].get("claimRef", {})
    was_deleted = there is None and reference.get("uid")
    if was_deleted and not free_for(name, namespace, volume["metadata"]["name"], mirror):
        raise Blocked("volume_gone", Outcome.FAIL, claim=name, volume=volume["metadata"]["name"])
    mirror.apply(claim)
