"""An unsaved pool and node of one cluster."""

from __future__ import annotations

from typing import Any

from clusters.models import Cluster, Node
from quotas.models import Pool
from tests.shared.stage import GPU

CLUSTER = Cluster(slug="main")


def pool(**values: Any) -> Pool:
    return Pool(cluster=CLUSTER, slug="p", **values)


def node(**values: Any) -> Node:
    return Node(**({"cluster": CLUSTER, "name": "n", "ready": True, "allocatable": {GPU: 4}} | values))
