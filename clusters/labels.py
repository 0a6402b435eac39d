"""Labels by which Berth knows its own objects in a cluster that it shares with others."""

from __future__ import annotations

from clusters.models import Installation

MANAGED_BY = "app.kubernetes.io/managed-by"
INSTANCE = "berth.dev/instance"
TENANT = "berth.dev/tenant"
OWNER = "berth.dev/owner"
WORKSPACE = "berth.dev/workspace"
JOB = "berth.dev/job"
RUN = "berth.dev/run"
VALIDATION = "berth.dev/validation"

MANAGER = "berth"


def instance_selector() -> dict[str, str]:
    """Return the labels that all objects of this installation have, and no other installation's."""
    return {MANAGED_BY: MANAGER, INSTANCE: str(Installation.current_id())}
