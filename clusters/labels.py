"""Labels by which Berth knows its own objects in a cluster that it shares with others, and the digest of an object."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from clusters.models import Installation

MANAGED_BY = "app.kubernetes.io/managed-by"
INSTANCE = "berth.dev/instance"
TENANT = "berth.dev/tenant"
OWNER = "berth.dev/owner"
WORKSPACE = "berth.dev/workspace"
VOLUME = "berth.dev/volume"
JOB = "berth.dev/job"
RUN = "berth.dev/run"
FILES = "berth.dev/files"
VALIDATION = "berth.dev/validation"
WARMS = "berth.dev/warms"  # id of the booking for which a pod pulls an image

MANAGER = "berth"
HASH = "berth.dev/hash"  # annotation that holds the digest of what was applied


def instance_selector() -> dict[str, str]:
    """Return the labels that all objects of this installation have, and no other installation's."""
    return {MANAGED_BY: MANAGER, INSTANCE: str(Installation.current_id())}


def digest_of(value: Any) -> str:
    """Return a short digest of a JSON value. Equal values have equal ones, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
