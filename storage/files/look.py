"""A look at the files session of a volume: its pod is made, watched and ended, as the row says.

A session is looked at by one thread of one process at a time, so that no pod is made while another one finds that none
is left. Its row ends once the end of its pod is proven: that is the lease.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.credentials.secrets import decrypt
from accounts.locks import alone, for_change, locked
from clusters import explain
from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.pods.ends import condition, end_proven, remove_finalizer, terminal
from clusters.storage import volumes
from quotas import holders
from quotas.models import Pool
from quotas.namespaces import ensuring
from storage.models import Adoption, FilesPhase, FilesSession, Volume

from . import inspecting, manifests

log = logging.getLogger(__name__)

IDLE = timedelta(minutes=10)
Object = Mapping[str, Any]


def look_at(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Look at the volume's session, if it has one. Return False if it has to be looked at again."""
    there = FilesSession.objects.filter(volume=volume, ended_at=None).first()
    if there is None:
        return True
    with alone(there.pk) as mine:
        row = FilesSession.objects.filter(pk=there.pk, ended_at=None).first()
        if not mine or row is None:
            return mine
        row.volume = volume
        if row.phase != FilesPhase.ENDING and must_end(row):
            if row.inspects:
                conclude(row, {"problem": row.problem or "inspection_silent", "data": row.problem_data})
            note(row, phase=FilesPhase.ENDING)
            row.phase = FilesPhase.ENDING
        if row.phase == FilesPhase.ENDING:
            return finish(row, mirror)
        try:
            tend(row, mirror, instance)
        except ClusterRefused as refusal:
            log.warning("files of volume %s: the cluster refused: %s", volume.pk, refusal.message)
            note(row, *explained("admission", refusal.message))
            return False
    return True


def must_end(row: FilesSession) -> bool:
    volume = row.volume
    is_gone = volume.bin_until is not None or volume.deleted_at is not None
    return is_gone or timezone.now() - row.used_at > IDLE


# --- up


def tend(row: FilesSession, mirror: Mirror, instance: UUID) -> None:
    """Make what is missing, and write down what is seen. A session whose pod ended, ends."""
    namespace, name = row.volume.tenant.namespace, row.object_name
    there = mirror.get("Pod", namespace, name) or mirror.api.get("Pod", namespace, name)
    if there is None and row.phase == FilesPhase.STARTING:
        create(row, mirror, instance)
        return
    if row.inspects and there is not None and terminal(there):
        conclude(row, inspecting.report_of(there))
    if there is None or terminal(there) or there["metadata"].get("deletionTimestamp"):
        note(row, phase=FilesPhase.ENDING)
        return
    host = address(row, there, mirror)
    if host and condition(there, "Ready") == "True" and not row.inspects:
        note(row, phase=FilesPhase.READY, host=host)
    elif row.phase == FilesPhase.STARTING:
        service = mirror.get("Service", namespace, name)
        about = [body["metadata"]["uid"] for body in (there, service) if body is not None]
        note(row, *trouble(there, [event for uid in about for event in mirror.events_about(uid)]))


def create(row: FilesSession, mirror: Mirror, instance: UUID) -> None:
    """Create its objects, the pod last, behind the fences of its tenant's namespace."""
    tenant, cluster = row.volume.tenant, row.volume.cluster
    try:
        ensuring.ensure(ensuring.wanted_objects(tenant, cluster, instance), instance, mirror)
    except ensuring.NoNamespace as blocked:
        note(row, blocked.code, {"namespace": blocked.namespace})
        return
    volumes.create_once(manifests.secret(row, decrypt(row.token), instance), mirror)
    volumes.create_once(manifests.program_map(row, instance), mirror)
    if manifests.needs_service(cluster):
        volumes.create_once(manifests.service(row, instance), mirror)
    pools = list(Pool.objects.filter(cluster=cluster).order_by("pk"))
    volumes.create_once(manifests.pod(row, pools, instance), mirror)


def address(row: FilesSession, pod: Object, mirror: Mirror) -> str:
    """Return host and port where Berth reaches the pod; empty: there is none yet."""
    host = (pod.get("status") or {}).get("podIP", "")
    if manifests.needs_service(row.volume.cluster):
        namespace = row.volume.tenant.namespace
        found = mirror.get("Service", namespace, row.object_name) or {}
        ingress = ((found.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [{}]
        host = ingress[0].get("ip") or ingress[0].get("hostname") or ""
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{manifests.PORT}" if host else ""


def trouble(pod: Object, events: Sequence[Object]) -> tuple[str, dict[str, Any]]:
    """Return why the pod does not start, as a code and its data; empty: nothing is known to be wrong."""
    status = pod.get("status") or {}
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False" and one.get("message"):
            return explained("scheduling", one["message"])
    for one in status.get("containerStatuses") or ():
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            source = "image" if "Image" in waiting.get("reason", "") else "container"
            return explained(source, f"{waiting.get('reason', '')}: {waiting['message']}")
    warnings = [one for one in events if one.get("type") == "Warning"]
    if not warnings:
        return "", {}
    newest = max(warnings, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    source = "service" if newest["involvedObject"].get("kind") == "Service" else "volume"
    return explained(source, str(newest.get("message", "")))


def explained(source: str, message: str) -> tuple[str, dict[str, Any]]:
    found = explain.diagnose(source, message)
    return found.code, {"raw": message[: inspecting.LONGEST_RAW], **found.data}


def conclude(row: FilesSession, report: Object) -> None:
    """Write down what the inspection found, once."""
    waits = Volume.objects.filter(pk=row.volume_id, adoption=Adoption.READ_ONLY, inspection__isnull=True)
    with transaction.atomic():
        for_change(waits).update(inspection=dict(report))


# --- down


def finish(row: FilesSession, mirror: Mirror) -> bool:
    """End the pod and what belongs to it. Return True once its end is proven, and the row says so."""
    namespace, name = row.volume.tenant.namespace, row.object_name
    there = mirror.api.get("Pod", namespace, name)
    if there is not None:
        if not there["metadata"].get("deletionTimestamp"):
            mirror.delete("Pod", namespace, name, uid=there["metadata"]["uid"])
            there = mirror.api.get("Pod", namespace, name)
        if there is not None and not end_proven(there):
            return False  # the watch tells its end
        if there is not None:
            remove_finalizer(there, mirror)
    for kind in ("Service", "Secret"):
        mirror.delete(kind, namespace, name)
    note(row, phase=FilesPhase.ENDED, host="", token="", ended_at=timezone.now())
    holders.volumes_changed(row.volume.mounts.values_list("holder", flat=True))
    return True


def note(row: FilesSession, problem: str = "", data: Object | None = None, **values: Any) -> None:
    """Write down what is seen; a session that is told to end meanwhile goes no way back."""
    values |= {"problem": problem, "problem_data": dict(data or {})}
    with transaction.atomic():
        now = locked(FilesSession.objects.filter(pk=row.pk)).get()
        if now.phase == FilesPhase.ENDING and values.get("phase") in (None, FilesPhase.READY):
            return
        changed = [name for name, value in values.items() if getattr(now, name) != value]
        for name in changed:
            setattr(now, name, values[name])
        if changed:
            now.save(update_fields=changed)
