"""Objects of one workspace and its tenant, as a cluster lists them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from monitoring.drift.compare import FENCES, OF_A_RUN

ID = UUID("00000000-0000-4000-8000-00000000000a")


NAMESPACE = "berth-demo"


def body(kind: str, name: str, workspace: str = str(ID), **metadata: Any) -> dict[str, Any]:
    labels = {"berth.dev/workspace": workspace} if workspace else {}
    namespace = {} if kind == "Namespace" else {"namespace": NAMESPACE}
    spec = {"finalizers": ["berth.dev/end-seen"]} if kind == "Pod" else {}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": f"{kind}/{name}",
            "labels": labels,
            **namespace,
            **spec,
            **metadata,
        },
        "spec": {},
    }


def of_a_run(workspace: UUID = ID) -> list[dict[str, Any]]:
    name = f"ws-{workspace}"
    return [body(kind, f"{name}-0" if kind == "Pod" else name, str(workspace)) for kind in OF_A_RUN]


def fences() -> list[dict[str, Any]]:
    return [body("Namespace", NAMESPACE, ""), *(body(kind, name, "") for kind, name in FENCES.items())]
