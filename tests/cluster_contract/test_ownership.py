"""Tests that the comparison leaves out exactly what others own in a status."""

from copy import deepcopy
from typing import Any

from tests.cluster_contract.ownership import CONTROLLERS, telling, without
from tests.cluster_contract.sameness import differences

Json = Any
READY = 'k:{"type":"Ready"}'


def owner(manager: str, *fields: str, subresource: str = "status") -> Json:
    conditions: Json = {READY: {".": {}, "f:type": {}, "f:status": {}}}
    owned = {"f:status": {"f:conditions": conditions, **{f"f:{name}": {} for name in fields}}}
    return {"manager": manager, "operation": "Update", "fieldsV1": owned, "subresource": subresource}


def pod(manager: str, *fields: str, **status: Json) -> Json:
    conditions = [{"type": "Ready", "status": manager}, {"type": "PodScheduled", "status": "True"}]
    meta = {"name": "p", "managedFields": [owner(manager, *fields)]}
    return {"metadata": meta, "spec": {"node": "a"}, "status": {"conditions": conditions, **status}}


def found(recorded: Json, given: Json) -> list[str]:
    return [path for path, _, _ in differences(recorded, given)]


PLAYED = pod("Python", "phase", phase="Running")
REAL = pod("kubelet", "phase", "hostIPs", phase="Running", hostIPs=["<ip>"])


def test_what_a_script_and_a_kubelet_own_in_a_status_is_not_compared() -> None:
    assert found(PLAYED, REAL) == []


def test_the_rest_of_the_object_is_compared() -> None:
    other = deepcopy(REAL)
    other["spec"]["node"] = "b"
    other["metadata"]["labels"] = {"app": "b"}
    other["status"]["conditions"][1]["status"] = "False"
    other["status"]["qosClass"] = "Burstable"
    assert found(PLAYED, other) == [
        "metadata.labels",
        "spec.node",
        "status.conditions[PodScheduled].status",
        "status.qosClass",
    ]


def test_a_kubelets_status_is_compared_where_no_script_had_its_place() -> None:
    assert "status.hostIPs" in found(pod("kubelet"), REAL)


def test_what_controllers_own_is_left_out_of_a_status_alone() -> None:
    quick, slow = pod("kube-controller-manager", "replicas", replicas=1), pod("berth")
    slow["metadata"]["managedFields"], slow["status"]["conditions"] = [], [slow["status"]["conditions"][1]]
    assert found(*without(slow, quick, CONTROLLERS)) == []
    quick["metadata"]["managedFields"] = [owner("kube-controller-manager", "replicas", subresource="")]
    assert "status.replicas" in found(*without(slow, quick, CONTROLLERS))


def test_a_watch_tells_the_same_however_often_a_kubelet_writes() -> None:
    last = deepcopy(REAL)
    last["spec"]["node"] = "b"
    events = [{"type": "MODIFIED", "object": shown} for shown in (PLAYED, REAL, last)]
    assert [event["object"] for event in telling(events)] == [PLAYED, last]


def test_bookmarks_come_when_the_server_likes_but_for_the_one_that_ends_the_initial_events() -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "<rv>"}}}
    ends = {
        "type": "BOOKMARK",
        "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}},
    }
    assert [*telling([bookmark, ends, bookmark])] == [ends]
