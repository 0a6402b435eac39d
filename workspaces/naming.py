"""Names of a workspace: in a host name, and of its objects in a cluster."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from clusters import labels

# Kubernetes events carry no labels of ours; the name of their object contains the id.
OBJECT_NAME = re.compile(r"ws-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-|$)")


def host_label(name: str) -> str:
    """Return the workspace's name as ssh accepts it in a host name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.").lower()


def workspace_of(body: dict[str, Any]) -> UUID | None:
    """Return the workspace of an object by its label, or by its name where somebody removed that; of an event by the
    name of its object."""
    labelled = (body.get("metadata", {}).get("labels") or {}).get(labels.WORKSPACE)
    if labelled:
        try:
            return UUID(labelled)
        except ValueError:
            return None
    named = body.get("involvedObject") if body.get("kind") == "Event" else body.get("metadata")
    found = OBJECT_NAME.match((named or {}).get("name") or "")
    return UUID(found[1]) if found else None
