"""A run on its way down: delete what it made, see its end, then give its units back, exactly once.

Every pod carries a finalizer of ours, so none can vanish before its end was seen: it is let go only after it was
seen terminal (or was taken back before any node had it) and that was written down.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from clusters.api import Api
from quotas import admission
from quotas.models import Claim

from . import runs
from .launch import claim_for
from .live import changing
from .look import labels_of, look_at
from .manifests import FINALIZER
from .models import Desired, Ending, Event, Phase, Workspace
from .observe import Object, Seen, end_proven
from .story import tell
from .volumes import delete_volumes

MADE_BY_A_RUN = ("Service", "Secret", "ConfigMap")


def take_down(workspace: Workspace, api: Api) -> None:
    """One pass: delete, let go what ended, and finish once nothing is left."""
    seen = look_at(workspace, api)
    for pod in seen.pods:
        note_pod(workspace, pod)
    delete_controller(workspace, seen, api)
    for pod in seen.pods:
        if end_proven(pod):
            let_go(pod, workspace, api)
    if seen.pods or seen.stateful_set or leftovers(workspace, api):
        return
    if not Workspace.objects.filter(pk=workspace.pk, pod_ended=True).exists():
        report_unproven(workspace)
        return
    if workspace.ending == Ending.DELETE and workspace.delete_disk and delete_volumes(workspace, api):
        return
    finish(workspace)


def note_pod(workspace: Workspace, pod: Object) -> None:
    """Write down what is known of the pod before anything is done to it."""
    uid, ended = pod["metadata"]["uid"], end_proven(pod)
    with changing(workspace.pk) as row:
        row.pod_uid, row.pod_ended = uid, ended


def let_go(pod: Object, workspace: Workspace, api: Api) -> None:
    """Take our finalizer off a pod whose end is proven; only that one entry, and only while it is there."""
    finalizers = pod["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return
    Workspace.objects.filter(pk=workspace.pk, pod_uid=pod["metadata"]["uid"]).update(pod_ended=True)
    path = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
    api.json_patch(
        "Pod",
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}],
    )


def delete_controller(workspace: Workspace, seen: Seen, api: Api) -> None:
    """The StatefulSet in the foreground: what hangs on it goes with it. Then pods that lost their controller."""
    namespace, stateful_set = workspace.tenant.namespace, seen.stateful_set
    if stateful_set is not None:
        if not stateful_set["metadata"].get("deletionTimestamp"):
            uid = stateful_set["metadata"]["uid"]
            api.delete("StatefulSet", namespace, workspace.object_name, uid=uid, propagation="Foreground")
        return
    for pod in seen.pods:
        if not pod["metadata"].get("deletionTimestamp"):
            api.delete("Pod", namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])


def leftovers(workspace: Workspace, api: Api) -> bool:
    """Whether anything else of a run is still there; what nothing owns any more is deleted."""
    found = False
    for kind in MADE_BY_A_RUN:
        for body in api.list(kind, namespace=workspace.tenant.namespace, labels=labels_of(workspace)):
            found = True
            metadata = body["metadata"]
            if not metadata.get("deletionTimestamp"):
                api.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return found


def report_unproven(workspace: Workspace) -> None:
    """The pod vanished without having been seen to end: its process may still run, so its units stay reserved."""
    if workspace.run is not None:
        admission.doubt_end(workspace.run)
    with changing(workspace.pk) as row:
        if row.message_code != "end_unproven":
            row.message_code, row.message_data = "end_unproven", {}
            tell(row, "end_unproven", level=Event.Level.ERROR)


def finish(workspace: Workspace) -> None:
    """Nothing is left and the end is proven: what comes next depends on why it ended and what is wanted now."""
    with transaction.atomic():
        admission.lock(workspace.pool.cluster_id)
        claim = runs.claim_of(workspace, Claim.State.WAITING, Claim.State.ADMITTED)
        with changing(workspace.pk) as row:
            ending, row.ending = Ending(row.ending), ""
            wanted = row.desired
        if wanted == Desired.DELETED:
            _release(claim, ending)
            _become_deleted(workspace)
        elif wanted == Desired.STOPPED:
            _release(claim, ending)
            _become_stopped(workspace, ending)
        elif ending == Ending.REQUEUE and claim is not None:
            _send_back(workspace, claim)
        elif ending in (Ending.RESTART, Ending.INTERRUPTED) and claim is not None:
            admission.renew(claim)  # its signal begins the next run
        else:
            _release(claim, ending)
            with changing(workspace.pk) as row:
                runs.begin(row, claim_for(row), "requested")


def _release(claim: Claim | None, ending: Ending) -> None:
    if claim is not None:
        admission.release(claim.pk, str(ending))


def _become_deleted(workspace: Workspace) -> None:
    with changing(workspace.pk) as row:
        code = "deleted_with_files" if row.delete_disk else "deleted"
        row.deleted_at = timezone.now()
        row.message_code, row.message_data = code, {}
        tell(row, code)


def _become_stopped(workspace: Workspace, ending: Ending) -> None:
    with changing(workspace.pk) as row:
        row.ready_at = row.started_at = None
        row.node = ""
        if ending == Ending.FAILED:
            row.phase = Phase.FAILED
            return
        row.phase = Phase.STOPPED
        row.message_code, row.message_data = "stopped", {}
        tell(row, "stopped")


def _send_back(workspace: Workspace, claim: Claim) -> None:
    why = workspace.failure or {"code": "sent_back", "data": {}}
    successor = admission.send_back(claim, why["code"], why["data"])
    with changing(workspace.pk) as row:
        runs.begin(row, successor, "requested")
