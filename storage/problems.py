"""Texts of what is wrong with a volume. Codes of the cluster's own messages have their texts in `clusters/causes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from clusters import explain

from .models import Volume


class Line(NamedTuple):
    sentence: Promise
    hint: Promise


LINES: dict[str, Line] = {
    "volume_deleted": Line(
        _("Somebody deletes its storage %(claim)s in the cluster. The data is kept."),
        _("Berth makes it available again. Tell an admin: nobody should delete it there."),
    ),
    "volume_lost": Line(
        _("Its storage was deleted in the cluster, and %(volume)s is no longer available."),
        _("Ask your admin for that persistent volume. Berth does not use an empty one instead."),
    ),
    "growth_failed": Line(
        _("The storage could not give it the requested size."),
        _("Request a smaller size, or ask your admin whether the storage is full."),
    ),
    "grows_at_next_start": Line(
        _("Its new size takes effect at the next start of a run that uses it."),
        _("Stop and start the workspace that mounts it."),
    ),
    "nearly_full": Line(
        _("%(percent)s %% of its space is used."),
        _("Grow it or delete files, before programs fail that write to it."),
    ),
    "full": Line(
        _("It is almost full: %(percent)s %% of its space is used."),
        _("Grow it or delete files. Programs fail once nothing can be written."),
    ),
    "no_snapshot_class": Line(
        _(
            "The storage class %(class)s makes no snapshots: the cluster has no snapshot class for its driver."
        ),
        _("Ask your admin for a VolumeSnapshotClass, or copy the files."),
    ),
    "snapshot_failed": Line(
        _("The storage could not make the copy."),
        _("Delete it and try again, or ask your admin what its storage says."),
    ),
    "source_gone": Line(
        _("The copy that it was to begin with is gone."), _("Delete it, and create it from another copy.")
    ),
    "adopted_missing": Line(
        _("There is no %(name)s in the cluster that could be adopted."),
        _("Delete this volume, and adopt another one."),
    ),
    "adopted_block": Line(
        _("%(name)s is a block device without a file system."),
        _("Delete this volume: such storage cannot be adopted."),
    ),
    "adopted_taken": Line(
        _("%(name)s belongs to %(by)s."),
        _("It is adopted once that is deleted. Its data stays only if its reclaim policy is Retain."),
    ),
    "adopted_unbound": Line(
        _("The PVC %(name)s has no storage yet."), _("It is adopted as soon as it is bound.")
    ),
    "adopted_in_use": Line(
        _("The pod %(by)s mounts %(name)s."), _("It is adopted as soon as that pod has ended.")
    ),
    "inspection_failed": Line(
        _("The inspection ended without a report."),
        _("Inspect it again, or ask your admin about its storage."),
    ),
    "inspection_silent": Line(
        _("The inspection did not end in time."), _("Inspect it again, or ask your admin about its storage.")
    ),
    "no_files_image": Line(
        _("The cluster %(cluster)s has no image that could look at its files."),
        _("An admin can name one in the cluster's settings, under Images. Then inspect it again."),
    ),
    "namespace_foreign": Line(
        _("The namespace %(namespace)s exists and does not belong to this installation of Berth."),
        _("Ask an admin to remove or rename it. Berth never takes over a namespace of others."),
    ),
    "namespace_terminating": Line(
        _("The namespace %(namespace)s is being deleted."), _("It is created again as soon as it is gone.")
    ),
}


OF_USE = ("nearly_full", "full")


def of(volume: Volume) -> tuple[str, Mapping[str, Any]]:
    """Return the code of what is wrong with the volume, and its data. That it is nearly full comes last."""
    if volume.problem:
        return volume.problem, volume.problem_data
    return volume.fullness, data_of_use(volume)


def data_of_use(volume: Volume) -> dict[str, Any]:
    return {"percent": volume.used_percent}


def shown(code: str, data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a problem in the reader's language, as {code, message, hint}; None: nothing is wrong."""
    return {"code": code, "message": sentence(code, data), "hint": hint(code, data)} if code else None


def sentence(code: str, data: Mapping[str, Any]) -> str:
    line = LINES.get(code)
    return str(line.sentence) % data if line else explain.sentence(code, data)


def hint(code: str, data: Mapping[str, Any]) -> str:
    line = LINES.get(code)
    return str(line.hint) if line else explain.hint(code, data)
