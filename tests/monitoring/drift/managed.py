"""Objects with a record of who manages which field."""

from __future__ import annotations

from typing import Any


def entry(manager: str, owned: dict[str, Any], **more: Any) -> dict[str, Any]:
    operation = "Apply" if manager == "berth" else "Update"
    return {
        "manager": manager,
        "operation": operation,
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": owned,
        **more,
    }


def of(kind: str, *entries: dict[str, Any], **body: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "x", "managedFields": list(entries)}, **body}


SET: dict[str, Any] = {"f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {}}}}
