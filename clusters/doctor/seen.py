"""Cluster as one examination sees it: nodes and API groups, which several looks read, are requested once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from clusters.api import Api
from clusters.nodes.inventory import NodeValues, node_values
from clusters.transport import Objects


class CachingApi(Api):
    def groups(self) -> set[str]:
        return self._groups

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Objects:
        if kind == "Node" and not labels and not fields:
            return self.bodies
        return super().list(kind, namespace=namespace, labels=labels, fields=fields)

    @cached_property
    def _groups(self) -> set[str]:
        return super().groups()

    @cached_property
    def bodies(self) -> Objects:
        return super().list("Node")

    @cached_property
    def nodes(self) -> Sequence[NodeValues]:
        return [node_values(body) for body in self.bodies]
