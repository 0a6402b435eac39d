"""Nodes for admins: state, GPUs and their errors, workspaces on them, and problems."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Node, PodUsage
from monitoring.admin.draining import NODE_ACTIONS, NodeAction
from monitoring.models import AgentState
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.counted import queries
from tests.shared.furnished_nodes import furnish

pytestmark = pytest.mark.django_db

LIST = "/admin/clusters/node/"


def page_of(cast: Cast, path: str = LIST) -> str:
    answer = browser(cast.admin).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def own_page(cast: Cast, node: str = "gpu-1") -> str:
    return page_of(cast, f"{LIST}{Node.objects.get(name=node).pk}/change/")


def test_the_list_shows_the_state_of_each_node(cast: Cast) -> None:
    furnish(cast)
    Node.objects.filter(name="gpu-1").update(system={"kernelVersion": "6.8.0-1"})
    Node.objects.filter(name="gpu-2").update(unschedulable=True)
    seen = page_of(cast)
    for words in (
        "2 × A100",
        "1 of its GPUs is out of use",
        ">80%<",
        "580.65.06, 6.8.0-1",
        "closed for new work",
        "no agent",
    ):
        assert words in seen, words
    assert "gpu-2" not in page_of(cast, f"{LIST}?state=broken")
    assert "gpu-1" not in page_of(cast, f"{LIST}?state=out").partition('id="result_list"')[2]


def test_a_silent_agent_is_shown_as_silent(cast: Cast) -> None:
    furnish(cast)
    AgentState.objects.update(seen_at=timezone.now() - timedelta(minutes=9))
    assert "silent, <time " in page_of(cast)


def test_a_nodes_page_shows_its_gpus_errors_troubles_and_workspaces(cast: Cast) -> None:
    furnish(cast)
    Node.objects.filter(name="gpu-1").update(
        system={"kubeletVersion": "v1.34.1"},
        conditions={"DiskPressure": {"status": "True", "message": "disk is nearly full"}},
    )
    seen = own_page(cast)
    for words in (
        "580.65.06", "v1.34.1", "GPU 1: NVIDIA A100", "New workspaces do not get it.", "61\xa0°C", "heat",
        "2 since its start, – ever", ">train-gpu-1</a>", "<td>79</td>", "disk is nearly full", "out of use",
        "Use the GPU again …", "Close for new work …",
    ):  # fmt: skip
        assert words in seen, words


def test_a_node_without_an_agent_has_a_page(cast: Cast) -> None:
    seen = own_page(cast, "gpu-2")
    assert "No GPU data yet." in seen
    assert "It was not tested yet." in seen
    assert "nothing uses a GPU" in seen


def test_pods_that_request_gpus_are_shown_on_a_node_without_an_agent(cast: Cast) -> None:
    for name, resource in (("mine", "nvidia.com/gpu"), ("cut", "nvidia.com/mig-1g.10gb"), ("none", "cpu")):
        PodUsage.objects.create(
            cluster=cast.cluster, node="gpu-2", uid=name, namespace="lab", name=name, requests={resource: 1}
        )
    seen = own_page(cast, "gpu-2")
    assert "lab/mine" in seen and "lab/cut" in seen and "lab/none" not in seen
    assert "nothing uses a GPU" not in seen


def test_the_list_takes_as_many_queries_for_one_node_as_for_many(cast: Cast) -> None:
    furnish(cast)
    few = queries(lambda: page_of(cast))
    furnish(cast, "gpu-2")
    assert queries(lambda: page_of(cast)) == few


@pytest.mark.parametrize("action", NODE_ACTIONS, ids=lambda action: action.name)
def test_a_preview_takes_as_many_queries_for_one_node_as_for_many(cast: Cast, action: NodeAction) -> None:
    furnish(cast, "gpu-1")
    furnish(cast, "gpu-2")
    nodes = list(Node.objects.select_related("cluster"))
    assert len(action.effects(cast.admin, nodes)) == 2
    few = queries(lambda: action.effects(cast.admin, nodes[:1]))
    assert queries(lambda: action.effects(cast.admin, nodes)) == few


def test_nodes_in_the_api_have_their_health_and_their_gpus(cast: Cast) -> None:
    furnish(cast)
    Node.objects.filter(name="gpu-1").update(out_code="node_lost")
    told = {one["name"]: one for one in browser(cast.admin).get("/api/v1/nodes/").json()["results"]}
    assert told["gpu-1"]["out"]["code"] == "node_lost"
    assert told["gpu-1"]["out"]["message"]
    assert [gpu["out"] and gpu["out"]["code"] for gpu in told["gpu-1"]["gpus"]] == [None, "gpu_lost"]
    assert told["gpu-1"]["gpus"][0]["utilization_percent"] == 80
    assert (told["gpu-2"]["out"], told["gpu-2"]["gpus"]) == (None, [])
