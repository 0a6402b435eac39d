"""Proof that a run's pods have ended, on which its claim depends: recorded before anything is done to a pod.

Every pod carries our finalizer, so no pod can vanish before its end was seen. The finalizer is removed only after the
pod was seen terminal (or was deleted before it had a node) and that was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusters.mirror import Mirror
from clusters.pods.ends import end_proven, remove_finalizer
from workloads.pods.status import Object
from workspaces.models import Workspace
from workspaces.state.live import changing


def note_pods(workspace: Workspace, pods: Sequence[Object]) -> bool:
    """Record the pod that was seen, and whether it has ended. Return False if the last pod vanished without an end.

    Then nothing else is recorded: the end of another pod does not prove the end of that pod.
    """
    if is_noted(workspace, pods):
        return True
    with changing(workspace.pk) as row:
        return row.run != workspace.run or note(row, pods)


def is_noted(row: Workspace, pods: Sequence[Object]) -> bool:
    """Return True if the row says of these pods what they show."""
    ends = {pod["metadata"]["uid"]: end_proven(pod) for pod in pods}
    return ends == ({} if row.pod_ended else {row.pod_uid: False})


def note(row: Workspace, pods: Sequence[Object]) -> bool:
    """Do as `note_pods` says, inside `changing`."""
    ends = {pod["metadata"]["uid"]: end_proven(pod) for pod in pods}
    if not row.pod_ended and row.pod_uid not in ends:
        return False
    for uid in sorted(ends, key=lambda uid: not ends[uid]):  # a running pod last
        if uid != row.pod_uid:
            row.pod_uid, row.pod_ended, row.container_restarts = uid, False, 0
        row.pod_ended = row.pod_ended or ends[uid]
    return True


def delete_pod(pod: Object, mirror: Mirror) -> bool:
    """Bring a pod one step nearer to its end. Return True if that is proven, and recorded before, and nothing holds it.

    A pod of the time when each workspace had a StatefulSet goes with its set, which would make it again.
    """
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences") or []:
        if owner["kind"] == "StatefulSet":
            mirror.delete("StatefulSet", metadata["namespace"], owner["name"], uid=owner["uid"])
    if not metadata.get("deletionTimestamp"):
        mirror.delete("Pod", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    if end_proven(pod):
        remove_finalizer(pod, mirror)
        return True
    return False
