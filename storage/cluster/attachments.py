"""Nodes that have a volume attached: no other run gets the volume until they have let go of it.

A pod's end does not prove that its node has unmounted the volume: the node says so by giving up the VolumeAttachment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from clusters.mirror import Mirror
from quotas import holders
from storage.models import Volume

KIND = "VolumeAttachment"


def volume_of(body: Mapping[str, Any]) -> str:
    """Return the name of the PersistentVolume that is attached; empty for one that a pod has inline."""
    return str(body["spec"]["source"].get("persistentVolumeName") or "")


def note(rows: Collection[Volume], mirror: Mirror) -> None:
    """Write down which nodes have these volumes attached, and let those go on who waited for that."""
    nodes: defaultdict[str, set[str]] = defaultdict(set)
    for body in mirror.all(KIND) if rows else ():
        nodes[volume_of(body)].add(body["spec"]["nodeName"])
    for row in rows:
        found = sorted(nodes.get(row.bound_to, ())) if row.bound_to else []
        if found == row.attached_to:
            continue
        Volume.objects.filter(pk=row.pk).update(attached_to=found)
        if not found:
            holders.volumes_changed(row.mounts.values_list("holder", flat=True))
