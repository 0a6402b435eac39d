"""Inspection of an adopted volume: a session whose pod says what is in it, and ends."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts.credentials.secrets import encrypt
from accounts.locks import locked
from quotas import admission
from storage import enqueue
from storage.models import Adoption, FilesSession, Phase, Volume
from storage.mounts.leasing import Leases

Object = Mapping[str, Any]
FIGURES = ("size_mib", "used_mib", "uid", "more")
LONGEST, MOST_NAMES = 256, 200
LONGEST_RAW = 2000


def begin(volume: Volume) -> None:
    """Start to look what is in an adopted volume, as soon as nobody holds it."""
    if FilesSession.objects.filter(volume=volume, ended_at=None).exists():
        return  # it goes on: no lock is needed to know that
    with transaction.atomic():
        admission.lock(volume.cluster_id)  # no run that mounts it is admitted meanwhile
        row = locked(Volume.objects.filter(pk=volume.pk).select_related("cluster")).get()
        waits = row.adoption != Adoption.READ_ONLY or row.inspection is not None or row.phase != Phase.READY
        if (
            waits
            or row.bin_until is not None
            or FilesSession.objects.filter(volume=row, ended_at=None).exists()
            or Leases().held([row.pk])
        ):
            return
        if not row.cluster.files_image:
            row.inspection = {"problem": "no_files_image", "data": {"cluster": row.cluster.name}}
            row.save(update_fields=["inspection"])
            return
        token = encrypt(secrets.token_urlsafe(32))
        FilesSession.objects.create(volume=row, by_id=row.owner_id, token=token, writes=False, inspects=True)
        enqueue.look([row.pk])


def report_of(pod: Object) -> dict[str, Any]:
    """Return the report of an ended pod; one with a `problem` if it gave none.

    The pod reads foreign files: only what a report may have is taken from it.
    """
    status = pod.get("status") or {}
    ends = [(one.get("state") or {}).get("terminated") or {} for one in status.get("containerStatuses") or ()]
    message = str(ends[0].get("message", "")) if ends else str(status.get("message", ""))
    try:
        report = _checked(json.loads(message))
    except (ValueError, TypeError, AttributeError):
        report = None
    if status.get("phase") != "Succeeded" or report is None:
        return {"problem": "inspection_failed", "data": {"raw": message[:LONGEST_RAW]}}
    return report


def _checked(found: Any) -> dict[str, Any]:
    """Raise ValueError, TypeError or AttributeError for what is no report."""
    return {
        "file_system": str(found.get("file_system", ""))[:LONGEST],
        "names": [str(name)[:LONGEST] for name in found.get("names") or ()][:MOST_NAMES],
        "unreadable": bool(found.get("unreadable")),
        **{name: int(found.get(name) or 0) for name in FIGURES},
    }
