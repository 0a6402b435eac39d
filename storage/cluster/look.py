"""A look at a volume: its PVC becomes what the row wants, and the row says what the cluster shows.

Level-triggered and idempotent: a look may run twice, come late, or be killed anywhere. Data is deleted in one place
only, `remove`, and only for a volume whose time in the bin is over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from accounts.locks import locked
from clusters import labels
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.mirror import Mirror
from clusters.storage import volumes
from clusters.storage.classes import Class, is_default, judge
from quotas import holders
from quotas.namespaces import ensuring
from storage import notices
from storage.files import inspecting
from storage.files import look as files
from storage.models import NO_DRIVER, Adoption, Phase, Snapshot, Volume

from . import adopting, manifests, snapshots
from .reading import LONGEST_RAW, Facts, explained, read, size_to_ask

log = logging.getLogger(__name__)

CLAIM = "PersistentVolumeClaim"
Object = Mapping[str, Any]


def look(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Look at one volume and answer its marks. Return False if the look has to be tried again.

    Raises the database's error if that is away; any other fault is this volume's own.
    """
    if volume.cluster.unreachable_since:
        return False
    try:
        is_done = end(volume, mirror, instance) if volume.is_due else tend(volume, mirror, instance)
    except ClusterUnavailable as error:
        log.warning("volume %s: the cluster is away: %s", volume.pk, error.message)
        return False
    except ClusterRefused as refusal:
        log.warning("volume %s: the cluster refused: %s", volume.pk, refusal.message)
        if refusal.status not in (409, 422):  # a conflict with another change passes by itself
            note_problem(volume, *explained(refusal.message))
        return False
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("volume %s: a fault", volume.pk)  # this volume's own: others go on
        return False
    if is_done and volume.dirty_since is not None:
        rows = Volume.objects.filter(pk=volume.pk, dirty_marks=volume.dirty_marks)
        rows.update(dirty_since=None)
    return is_done


def tend(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Keep the volume, its copies and its files session. Return False if one of these has to be looked at again."""
    files_done = files.look_at(volume, mirror, instance)
    keep(volume, mirror, instance)
    if volume.adoption == Adoption.READ_ONLY and volume.inspection is None and volume.bin_until is None:
        inspecting.begin(volume)
    return snapshots.look_at_all(volume, mirror, instance) and files_done


def end(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Delete the volume for good, after its copies and its files session. Return False if one is left."""
    if not files.look_at(volume, mirror, instance) or not snapshots.end_all(volume, mirror, instance):
        return False
    remove(volume, mirror)
    return True


# --- keep


def hold(volume: Volume, mirror: Mirror, instance: UUID) -> Object | None:
    """Return the PVC of a volume that a run is about to mount, made and kept, and the row as it is then; None if it
    cannot be made: the row says why."""
    there = mirror.get(CLAIM, volume.tenant.namespace, volume.object_name)
    if there is not None and is_known(volume, there):
        return there
    claim = keep(volume, mirror, instance)
    volume.refresh_from_db()
    return claim


def is_known(volume: Volume, claim: Object) -> bool:
    """Return True if the row says what the PVC is bound to, and its label says whose it is."""
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    is_ours = (claim["metadata"].get("labels") or {}).get(labels.VOLUME) == str(volume.pk)
    return is_ours and (not is_bound or claim["spec"].get("volumeName") == volume.bound_to)


def keep(volume: Volume, mirror: Mirror, instance: UUID) -> Object | None:
    """Make the PVC if it is missing, keep what it is bound to, let it grow, and write down what is seen. Return it."""
    if volume.adoption in (Adoption.ASKED, Adoption.CONFIRMED) and not adopt(volume, mirror, instance):
        return None
    there: Object | None = mirror.get(CLAIM, volume.tenant.namespace, volume.object_name)
    claim = there or make(volume, mirror, instance)
    if claim is None:
        return None
    claim = volumes.restore_labels(claim, manifests.labels_of(volume, instance), mirror)
    found = class_of(claim["spec"].get("storageClassName", ""), volume, mirror)
    bound = keep_data(volume, claim, mirror)
    refused: tuple[str, dict[str, Any]] | None = None
    if (size := size_to_ask(volume, claim)) is not None and not volume.is_read_only:
        try:
            claim = ask_for(size, claim, mirror)
        except ClusterRefused as refusal:
            if refusal.status not in (403, 422):
                raise
            refused = "growth_failed", {"raw": refusal.message[:LONGEST_RAW]}
    facts = read(volume, claim, found, mirror.events_about(claim["metadata"]["uid"]))
    if refused is not None and not facts.problem:
        facts = Facts(facts.phase, facts.size_mib, *refused)
    record(volume, facts, claim, found, bound)
    return claim


def make(volume: Volume, mirror: Mirror, instance: UUID) -> Object | None:
    """Create the PVC; one whose data is kept binds that again. Return None if it cannot be made: the row says why."""
    try:
        ensuring.ensure(ensuring.wanted_objects(volume.tenant, volume.cluster, instance), instance, mirror)
    except ensuring.NoNamespace as blocked:
        note_problem(volume, blocked.code, {"namespace": blocked.namespace})
        return None
    namespace, name = volume.tenant.namespace, volume.object_name
    if volume.bound_to:
        # First: a reference without the uid of a PVC that is there would let Kubernetes give that PVC up for lost.
        there = mirror.api.get(CLAIM, namespace, name)  # its labels may be gone, or the watch is late
        if there is not None:
            return there
        if not volumes.free_for(name, namespace, volume.bound_to, mirror):
            note_problem(volume, "volume_lost", {"volume": volume.bound_to}, Phase.FAILED)
            return None
    if (
        volume.source is not None
        and not volume.bound_to
        and not has_source(volume, volume.source, mirror, instance)
    ):
        return None
    found = class_of(volume.storage_class, volume, mirror)
    return volumes.create_claim(manifests.claim(volume, found, instance), mirror)


def adopt(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Take the next step of an adoption, and read the row anew. Return False if it has to be looked at again."""
    seen: dict[str, Any] = {"adoption": ""}
    try:
        if volume.adoption == Adoption.CONFIRMED:
            if not adopting.allow_writing(volume.bound_to, mirror):
                return False
        elif (taken := adopting.take(volume, mirror, instance)) is None:
            return False
        else:
            seen = {
                "adoption": Adoption.READ_ONLY,
                "bound_to": taken.name,
                "storage_class": taken.storage_class,
                "size_mib": taken.size_mib,
                "requested_mib": taken.size_mib,
                "access": taken.access,
                "affinity": volumes.affinity_of(taken.body),
            }
    except adopting.Blocked as blocked:
        note_problem(volume, blocked.code, blocked.data)
        return False
    with changing(volume) as row:
        if row.adoption == volume.adoption:
            for name, value in (seen | {"problem": "", "problem_data": {}}).items():
                setattr(row, name, value)
    volume.refresh_from_db()
    return True


def has_source(volume: Volume, source: Snapshot, mirror: Mirror, instance: UUID) -> bool:
    """Return True if the copy that the volume begins with is there. One that failed fails the volume."""
    if source.phase in (Phase.FAILED, Phase.DELETING, Phase.DELETED):
        code = source.problem or "source_gone"
        note_problem(volume, code, source.problem_data, Phase.FAILED)
    return snapshots.ensure(source, mirror, instance)


def class_of(name: str, volume: Volume, mirror: Mirror) -> Class | None:
    """Return what the class can do, the default one for an empty name; None if there is none."""
    body = mirror.get("StorageClass", None, name) if name else None
    if not name:
        body = next((one for one in mirror.all("StorageClass") if is_default(one)), None)
    return None if body is None else judge(body, volume.cluster.shared_classes)


def keep_data(volume: Volume, claim: Object, mirror: Mirror) -> Object | None:
    """Set what the PVC is bound to to Retain, once, so that even a deleted namespace deletes no data. Return it."""
    name = claim["spec"].get("volumeName", "")
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    if not is_bound or (volume.bound_to == name and volume.driver):
        return None
    return volumes.set_reclaim(name, "Retain", mirror)


def ask_for(size_mib: int, claim: Object, mirror: Mirror) -> Object:
    metadata = claim["metadata"]
    change = {"spec": {"resources": {"requests": {"storage": f"{size_mib}Mi"}}}}
    return mirror.merge_patch(CLAIM, metadata["namespace"], metadata["name"], change) or claim


# --- remove


def remove(volume: Volume, mirror: Mirror) -> None:
    """Delete the PVC with its data, as its owner asked. Nothing can be restored from here on."""
    with changing(volume) as row:
        if not row.is_due or row.deleted_at:
            return  # restored meanwhile
        row.phase = Phase.DELETING
    namespace, name = volume.tenant.namespace, volume.object_name
    is_ours = not volume.is_read_only  # the data of a volume that nobody confirmed stays where it was found
    claim = mirror.api.get(CLAIM, namespace, name)
    if claim is not None and (is_ours or not volume.claim_name):
        if not claim["metadata"].get("deletionTimestamp"):
            if is_ours and (bound_to := claim["spec"].get("volumeName")):
                volumes.let_go(name, namespace, bound_to, mirror)
            mirror.delete(CLAIM, namespace, name, uid=claim["metadata"]["uid"])
        if mirror.api.get(CLAIM, namespace, name) is not None:
            return  # the watch tells its end
    if volume.bound_to and is_ours:
        volumes.let_go(name, namespace, volume.bound_to, mirror)  # somebody had deleted the PVC before
    with changing(volume) as row:
        row.phase, row.problem, row.problem_data = Phase.DELETED, "", {}
        row.deleted_at = timezone.now()


# --- the row


def record(volume: Volume, facts: Facts, claim: Object, found: Class | None, bound: Object | None) -> None:
    modes = claim["spec"].get("accessModes") or [""]
    seen: dict[str, Any] = {
        "phase": Phase.IN_BIN if volume.bin_until else facts.phase,
        "problem": facts.problem,
        "problem_data": facts.data,
        "size_mib": facts.size_mib or volume.size_mib,
        "storage_class": claim["spec"].get("storageClassName", ""),
        "access": manifests.ACCESS_OF.get(modes[0], ""),
    }
    if found is not None:
        seen |= {"is_enforced": found.is_enforced, "can_grow": found.can_grow}
    if bound is not None:
        seen |= {"bound_to": bound["metadata"]["name"], "affinity": volumes.affinity_of(bound)}
        seen["driver"] = volumes.driver_of(bound) or NO_DRIVER
    if all(getattr(volume, name) == value for name, value in seen.items()):
        return
    with changing(volume) as row:
        if row.is_due or row.deleted_at:
            return  # its time in the bin ended meanwhile
        seen["phase"] = Phase.IN_BIN if row.bin_until else facts.phase
        for name, value in seen.items():
            setattr(row, name, value)
        row.requested_mib = max(row.requested_mib, row.size_mib)  # drivers round up
        if facts.problem == "volume_deleted" != volume.problem:
            notices.alarm(row, row.problem, row.problem_data)
    tell_holders(volume, row)


def note_problem(volume: Volume, code: str, data: Object, phase: Phase | None = None) -> None:
    with changing(volume) as row:
        row.problem, row.problem_data = code, dict(data)
        if phase is not None and row.bin_until is None:
            row.phase = phase
    tell_holders(volume, row)


def tell_holders(before: Volume, now: Volume) -> None:
    """Let those who mount the volume look again, if there is news: it is there, or something is in its way.

    Outside of the transaction that locks the volume: their rows come before it in the order of locks.
    """
    if (before.phase, before.problem, before.access) != (now.phase, now.problem, now.access):
        holders.volumes_changed(before.mounts.values_list("holder", flat=True))


@contextmanager
def changing(volume: Volume) -> Iterator[Volume]:
    """Yield the row, locked; at the end save what differs."""
    with transaction.atomic():
        row = locked(Volume.objects.select_related("tenant", "owner")).get(pk=volume.pk)
        before = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
        yield row
        changed = [name for name, value in before.items() if getattr(row, name) != value]
        if changed:
            row.save(update_fields=[*changed, "changed_at"])
