"""Real API with only the rights that Berth requests: the label is on the node, and Berth sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.connections import api_for
from clusters.models import Gpu, Node
from clusters.nodes.inventory import NodeTable, node_values
from monitoring.intake import ecc
from quotas.models import Pool
from quotas.pools import selection
from tests.cast import Cast
from tests.shared.cast_fixtures import cast, own_rights, played_cluster  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_the_node_carries_the_label_that_pods_ask_for(cast: Cast, own_rights: Path) -> None:  # noqa: F811
    cluster = cast.cluster
    cluster.connection, cluster.kubeconfig_path = "kubeconfig", str(own_rights)
    cluster.save()
    api = api_for(cluster)
    NodeTable(cluster).replace(map(node_values, api.list("Node")))
    node = Node.objects.filter(cluster=cluster).order_by("name")[0]
    Gpu.objects.create(cluster=cluster, node=node.name, uuid="GPU-0", ecc=True)

    ecc.label(cluster.pk)

    NodeTable(cluster).replace(map(node_values, api.list("Node")))
    pool = Pool(cluster=cluster, match_ecc=True)
    assert [one.name for one in selection.members(pool, Node.objects.all())] == [node.name]
    [term] = selection.manifest(selection.terms(pool))
    assert term["matchExpressions"] == [{"key": selection.ECC, "operator": "In", "values": ["true"]}]
    body = api.get("Node", None, node.name)
    assert body is not None
    assert body["metadata"]["labels"][selection.ECC] == "true"
    assert ecc.wrong() == {}
