"""GPUs of nodes, as agents reported them. Their rows know the node by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from clusters.models import Gpu, Node

# Resources that are GPUs or parts of them, of any device plugin.
RESOURCE = re.compile(r"gpu|/mig-|vcuda", re.IGNORECASE)

NodeKey = tuple[UUID, str]  # cluster, name


def gpus_on(nodes: Iterable[Node]) -> defaultdict[NodeKey, list[Gpu]]:
    """Return each node's GPUs in their order, in one query."""
    wanted = {(node.cluster_id, node.name) for node in nodes}
    rows = Gpu.objects.filter(
        cluster__in={cluster for cluster, _name in wanted}, node__in={name for _cluster, name in wanted}
    )
    found: defaultdict[NodeKey, list[Gpu]] = defaultdict(list)
    for gpu in rows:
        found[gpu.cluster_id, gpu.node].append(gpu)
    return found
