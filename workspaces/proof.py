"""The proof that a run's pods have ended, on which its claim hangs: written down before anything is done to a pod.

Every pod carries a finalizer of ours, so none can vanish before its end was seen: it is let go only after it was
seen terminal (or was taken back before any node had it) and that was written down.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusters.api import Api

from .live import changing
from .manifests import FINALIZER
from .models import Workspace
from .observe import Object, end_proven


def note_pods(workspace: Workspace, pods: Sequence[Object]) -> bool:
    """Write down which pod was seen, and whether it has ended. False when the last one vanished without an end.

    Then nothing else is written any more: another pod's end does not prove that one's.
    """
    ends = {pod["metadata"]["uid"]: end_proven(pod) for pod in pods}
    if ends == ({} if workspace.pod_ended else {workspace.pod_uid: False}):
        return True  # as it was written down before
    with changing(workspace.pk) as row:
        if row.run != workspace.run:
            return True
        if not row.pod_ended and row.pod_uid not in ends:
            return False
        for uid in sorted(ends, key=lambda uid: not ends[uid]):  # one that still runs counts last
            if uid != row.pod_uid:
                row.pod_uid, row.pod_ended, row.container_restarts = uid, False, 0
            row.pod_ended = row.pod_ended or ends[uid]
        return True


def let_go(pod: Object, api: Api) -> None:
    """Take our finalizer off a pod whose end is proven; only that one entry, and only while it is there."""
    finalizers = pod["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return
    path = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
    api.json_patch(
        "Pod",
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}],
    )
