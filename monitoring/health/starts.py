"""Nodes on which pods do not start: no address is left, or the network or container runtime does not answer.

Conditions of the node show this late, if ever; events of pods show it at once, for Berth's pods and others. rules.py
decides when it takes the node out. The node is back when a pod starts there, or after a while, for another try.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from clusters import explain
from clusters.models import Cluster, PodUsage
from clusters.watch.watching import Changed
from jobs import naming
from monitoring.health import judging
from monitoring.models import FailedStart
from workspaces.naming import workspace_of

NODE_REASONS = frozenset({"FailedCreatePodSandBox", "NetworkNotReady", "InspectFailed"})
VOLUME_REASONS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
FORGOTTEN_AFTER = timedelta(hours=1)
LONGEST_TEXT = 500


def on_objects_changed(*, cluster: Cluster, changes: Sequence[Changed], **_: object) -> None:
    bodies = [step.body for step in changes if step.change != "DELETED"]
    told = [body for body in bodies if body.get("kind") == "Event" and is_about_a_start(body)]
    nodes = {node for body in told if (node := note(cluster, body))}
    started = [body for body in bodies if body.get("kind") == "Pod" and has_started(body)]
    if started and FailedStart.objects.filter(cluster=cluster).exists():
        nodes |= {node for body in started if (node := forget(cluster, body))}
    for node in sorted(nodes):
        judging.judge(cluster.pk, node)


def is_about_a_start(event: dict[str, Any]) -> bool:
    """Return True for events of any pod that show a node's problem. Storage counts for Berth's own pods only."""
    reason, about = event.get("reason"), event.get("involvedObject") or {}
    tells = reason in NODE_REASONS or (reason in VOLUME_REASONS and is_of_ours(event, about.get("name", "")))
    return about.get("kind") == "Pod" and tells and not explain.is_passing(str(event.get("message", "")))


def is_of_ours(event: dict[str, Any], name: str) -> bool:
    return workspace_of(event) is not None or naming.named_in(name) is not None


def has_started(pod: dict[str, Any]) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return bool(pod["spec"].get("nodeName")) and any(
        "running" in (one.get("state") or {}) for one in statuses
    )


def note(cluster: Cluster, event: dict[str, Any]) -> str:
    """Write the failed start down. Return the node, or "" if unknown."""
    about, text = event["involvedObject"], str(event.get("message", "")).replace("\0", "")
    namespace, pod = about.get("namespace", ""), about.get("name", "")
    is_volume = event["reason"] in VOLUME_REASONS
    node = (event.get("source") or {}).get("host") or _node_of(cluster, namespace, pod)
    if not node:
        return ""
    row = FailedStart(
        cluster=cluster,
        node=node,
        namespace=namespace,
        pod=pod,
        code=explain.diagnose("volume" if is_volume else "container", text).code,
        text=text[:LONGEST_TEXT],
        is_volume=is_volume,
        count=event.get("count") or 1,
        last_at=timezone.now(),
    )
    FailedStart.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["cluster", "node", "namespace", "pod", "code"],
        update_fields=["text", "count", "last_at"],
    )
    return str(node)


def _node_of(cluster: Cluster, namespace: str, pod: str) -> str:
    pods = PodUsage.objects.filter(cluster=cluster, namespace=namespace, name=pod)
    return pods.values_list("node", flat=True).first() or ""


def forget(cluster: Cluster, pod: dict[str, Any]) -> str:
    """Delete failed starts that a started pod disproves, its own and others there. Return the node, or "" if none."""
    metadata, node = pod["metadata"], str(pod["spec"]["nodeName"])
    its = Q(namespace=metadata["namespace"], pod=metadata["name"])
    rows = FailedStart.objects.filter(its | Q(is_volume=False), cluster=cluster, node=node)
    return node if rows.delete()[0] else ""


def forget_old() -> None:
    FailedStart.objects.filter(last_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
