"""Objects as a cluster lists them: of one workspace and its tenant, and with a record of who manages which field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from monitoring.drift.compare import FENCES, OF_A_RUN
from monitoring.drift.survey import survey
from monitoring.models import What
from tests.cast import Cast

ID = UUID("00000000-0000-4000-8000-00000000000a")
NAMESPACE = "berth-demo"
SERVICE: dict[str, Any] = {"f:spec": {"f:type": {}, "f:selector": {}, "f:ports": {}}}


def body(kind: str, name: str, workspace: str = str(ID), **metadata: Any) -> dict[str, Any]:
    labels = {"berth.dev/workspace": workspace} if workspace else {}
    namespace = {} if kind == "Namespace" else {"namespace": NAMESPACE}
    spec = {"finalizers": ["berth.dev/end-seen"]} if kind == "Pod" else {}
    given = {"name": name, "uid": f"{kind}/{name}", "labels": labels}
    return {"kind": kind, "metadata": given | namespace | spec | metadata, "spec": {}}


def of_a_run(workspace: UUID = ID) -> list[dict[str, Any]]:
    name = f"ws-{workspace}"
    return [body(kind, name, str(workspace)) for kind in OF_A_RUN]


def of_an_earlier_run() -> list[dict[str, Any]]:
    """Return a run as earlier versions of Berth made it: a StatefulSet that owns the rest."""
    name = f"ws-{ID}"
    owned: dict[str, Any] = {"ownerReferences": [{"kind": "StatefulSet", "uid": f"StatefulSet/{name}"}]}
    rest = [body(kind, name, **owned) for kind in ("ConfigMap", "Service", "Secret")]
    of_set = body("StatefulSet", name) | {"status": {"replicas": 1}}
    return [of_set, *rest, body("Pod", f"{name}-0", **owned)]


def fences() -> list[dict[str, Any]]:
    return [body("Namespace", NAMESPACE, ""), *(body(kind, name, "") for kind, name in FENCES.items())]


def entry(manager: str, owned: dict[str, Any], **more: Any) -> dict[str, Any]:
    operation = "Apply" if manager == "berth" else "Update"
    made = {"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": owned}
    return made | more


def of(kind: str, *entries: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Return an object whose fields were set by these entries of `managedFields`."""
    return {"kind": kind, "metadata": {"name": "x", "managedFields": list(entries)}, **body}


class Listing:
    """Cluster that only lists. `meanwhile` runs before its pods are read."""

    def __init__(self, *bodies: dict[str, Any], meanwhile: Callable[[], object] = lambda: None) -> None:
        self.bodies, self.meanwhile = bodies, meanwhile
        self.whole: set[str] = set()

    def each(self, kind: str, *, labels: Mapping[str, str], metadata_only: bool) -> Iterator[dict[str, Any]]:
        assert set(labels) == {"app.kubernetes.io/managed-by", "berth.dev/instance"}
        if not metadata_only:
            self.whole.add(kind)
        if kind == "Pod":
            self.meanwhile()
        yield from (body for body in self.bodies if body["kind"] == kind)


def looked(cast: Cast, *bodies: dict[str, Any], **options: Any) -> list[tuple[What, str]]:
    api: Any = Listing(*bodies, **options)
    return [(one.what, one.key.kind) for one in survey(cast.cluster, api).found]
