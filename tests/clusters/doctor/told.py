"""Fake cluster with given answers, for tests of doctor's findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusters.models import Cluster
from clusters.nodes.inventory import node_values
from clusters.storage.classes import DEFAULT_CLASS


class Said:
    """Fake API with given answers: lists by kind, API groups, and denied rights."""

    def __init__(
        self,
        *,
        denied: tuple[str, ...] = (),
        groups: tuple[str, ...] = (),
        has_earlier_account: bool = False,
        **lists: list[dict[str, Any]],
    ) -> None:
        self.has_earlier_account = has_earlier_account
        self.lists = lists
        self.denied = denied
        self.served = set(groups)

    def list(self, kind: str, *, namespace: str = "", labels: Any = None) -> list[dict[str, Any]]:
        wanted = (labels or {}).items()
        return [
            body
            for body in self.lists.get(kind, [])
            if wanted <= body.get("metadata", {}).get("labels", {}).items()
        ]

    def each(self, kind: str) -> Iterator[dict[str, Any]]:
        return iter(self.list(kind))

    def groups(self) -> set[str]:
        return self.served

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["spec"]["resourceAttributes"]
        if body["spec"].get("user", "").endswith(":berth"):
            return {"status": {"allowed": self.has_earlier_account}}
        return {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}


def storage_class(
    name: str, *, late: bool = True, grows: bool = True, default: bool = False
) -> dict[str, Any]:
    annotations = {DEFAULT_CLASS: "true"} if default else {}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "volumeBindingMode": "WaitForFirstConsumer" if late else "Immediate",
        "allowVolumeExpansion": grows,
    }


def node(ready: str = "True", provider: str = "", name: str = "n", **allocatable: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.memory": "15360"},
        },
        "spec": {"providerID": provider},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def said(check: Any, api: Said, **cluster: Any) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.message) for finding in check(api, Cluster(slug="lab", **cluster))]


def of_nodes(check: Any, *bodies: dict[str, Any]) -> list[tuple[str, str]]:
    found = check([node_values(body) for body in bodies])
    return [(finding.level.value, finding.message) for finding in found]


def levels(findings: list[tuple[str, str]]) -> list[str]:
    return [level for level, __ in findings]
