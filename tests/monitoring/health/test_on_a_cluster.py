"""Real API with only the rights that Berth requests: nodes are closed, drained and opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.connections import api_for
from clusters.models import Node
from clusters.nodes.inventory import NodeTable, node_values
from monitoring.health import drain
from monitoring.models import Trouble
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_a_node_is_closed_drained_and_opened(cast: Cast, own_rights: Path) -> None:
    cluster = cast.cluster
    cluster.connection, cluster.kubeconfig_path = "kubeconfig", str(own_rights)
    cluster.save()
    api = api_for(cluster)

    def watched() -> Node:
        NodeTable(cluster).replace(map(node_values, api.list("Node")))
        return Node.objects.order_by("name")[0]

    node = watched()
    assert drain.cordon(cast.admin, node, "a fan is loud")
    node = watched()
    assert node.unschedulable and node.system["bootID"] and node.conditions["Ready"]["status"] == "True"
    body = api.get("Node", None, node.name)
    assert body is not None
    assert body["metadata"]["annotations"][drain.CORDONED_WHY] == "a fan is loud"
    assert drain.drain(cast.admin, node, 10)
    assert Node.objects.get(pk=node.pk).out_code == "node_drains"
    assert drain.uncordon(cast.admin, node)
    node = watched()
    assert not node.unschedulable and not node.out_code and not Trouble.objects.filter(ended_at=None)
    body = api.get("Node", None, node.name)
    assert body is not None and drain.CORDONED_BY not in body["metadata"].get("annotations", {})
