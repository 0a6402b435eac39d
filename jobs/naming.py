"""Names of the objects of jobs in a cluster: each has the id of a job, or of the run of an attempt."""

from __future__ import annotations

import re
from uuid import UUID

OBJECT_NAME = re.compile(r"job-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-|$)")


def name_of(pk: UUID | str) -> str:
    return f"job-{pk}"


def named_in(name: str) -> UUID | None:
    """Return the id of a job or run in an object's name."""
    found = OBJECT_NAME.match(name)
    return UUID(found[1]) if found else None
