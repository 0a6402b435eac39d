"""Actions of an admin on a node or a GPU, and their effect on people there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from accounts.errors import Conflict, Refusal
from accounts.models import AuditEntry
from accounts.notices.models import Notice
from clusters.errands import running
from clusters.errors import ClusterUnavailable
from clusters.models import Cluster, Node, PodUsage
from monitoring.health import drain, trusting
from monitoring.models import AgentState, Trouble
from quotas import holders
from quotas.models import Claim
from tests.monitoring.health.ward import NODE, Ward, open_codes, story
from tests.shared.clients import ask, script
from tests.shared.played_api import PlayedApi
from workspaces.models import Desired, Ending, Workspace
from workspaces.state import story as words

pytestmark = pytest.mark.django_db


class Nodes(PlayedApi):
    """Cluster whose changes reach the rows, as with the watch."""

    def merge_patch(self, kind: str, namespace: str | None, name: str, body: Any) -> Any:
        super().merge_patch(kind, namespace, name, body)
        there = self.objects[kind, "", name]
        for part in (there["metadata"]["annotations"], there["spec"]):
            for key in [key for key, value in part.items() if value is None]:
                del part[key]
        Node.objects.filter(name=NODE).update(unschedulable=bool(there["spec"].get("unschedulable")))
        return there


@pytest.fixture
def api(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> PlayedApi:
    api = Nodes()
    api.put({"kind": "Node", "metadata": {"name": NODE}, "spec": {}})
    monkeypatch.setattr(drain, "api_for", lambda cluster: api)
    return api


@pytest.fixture
def node(ward: Ward) -> Node:
    return Node.objects.get(name=NODE)


def body(api: PlayedApi) -> dict[str, Any]:
    found = api.get("Node", None, NODE)
    assert found is not None
    return found


def test_a_closed_node_names_who_closed_it_and_why_until_it_is_opened(
    ward: Ward, api: PlayedApi, node: Node
) -> None:
    assert drain.cordon(ward.cast.admin, node, "a fan is loud")
    assert body(api)["spec"]["unschedulable"] is True
    why = {drain.CORDONED_BY: "admin", drain.CORDONED_WHY: "a fan is loud"}
    assert body(api)["metadata"]["annotations"] == why
    assert not drain.cordon(ward.cast.admin, node)  # asking twice is no error
    assert drain.uncordon(ward.cast.admin, node)
    assert not body(api)["spec"].get("unschedulable")
    assert not body(api)["metadata"].get("annotations")
    verbs = list(AuditEntry.objects.order_by("at").values_list("action", flat=True))
    assert verbs[0] == "cluster.cordon" and verbs[-1] == "cluster.uncordon"


def test_only_admins_may(ward: Ward, api: PlayedApi, node: Node) -> None:
    for do in (drain.cordon, drain.uncordon, lambda actor, node: drain.drain(actor, node, 5)):
        with pytest.raises(Refusal):
            do(ward.cast.alice, node)
    with pytest.raises(Refusal):
        trusting.trust(ward.cast.alice, ward.gpu(0))
    assert not body(api)["spec"].get("unschedulable")


def test_a_drain_is_refused_while_the_cluster_does_not_answer(ward: Ward, api: PlayedApi, node: Node) -> None:
    def away() -> None:
        raise ClusterUnavailable("no answer in time")

    api.before_call = away
    with pytest.raises(Conflict, match="no answer in time"):
        drain.drain(ward.cast.admin, node, 5)
    assert open_codes() == []


def test_people_on_a_drained_node_are_notified_and_stopped_at_its_time(
    ward: Ward, api: PlayedApi, node: Node
) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    assert drain.drain(ward.cast.admin, node, 10)
    assert story(alices) == [("node_drains", "warning")]
    row = Workspace.objects.get(pk=alices.pk)
    assert row.message_code == "node_drains"
    assert "maintenance at" in words.sentence(row.message_code, row.message_data)
    assert Node.objects.get(name=NODE).out_code == "node_drains"
    assert {notice.kind for notice in Notice.objects.exclude(kind="ready")} == {"stops_soon"}
    drain.pass_due()
    assert Workspace.objects.get(pk=alices.pk).desired == Desired.RUNNING  # not yet
    Trouble.objects.update(data={"until": timezone.now().isoformat()})
    drain.pass_due()
    drain.pass_due()
    row = Workspace.objects.get(pk=alices.pk)  # stopped like any other, its files kept
    assert (row.desired, row.ending) == (Desired.STOPPED, Ending.STOP)
    assert story(alices) == [("node_drains", "warning"), ("stopped_by_drain", "warning")]


class Stopping:
    """Holder that notes which claims a drain stops."""

    def __init__(self) -> None:
        self.drained: list[UUID] = []

    def drain(self, claim: Claim) -> bool:
        self.drained.append(claim.pk)
        return True


def test_a_drain_of_one_node_stops_a_run_on_several(
    ward: Ward, api: PlayedApi, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Stopping()
    monkeypatch.setitem(holders._holders, Claim.Holder.JOB, holder)
    gang = Claim.objects.create(
        tenant=ward.cast.demo, user=ward.cast.alice.user, pool=ward.cast.pool, units=4, members=2, cpu_millicores=1,
        memory_mib=1, holder_kind=Claim.Holder.JOB, holder_id=uuid4(), place=1, state=Claim.State.ADMITTED,
        node="gpu-2", nodes=["gpu-2", NODE], admitted_at=timezone.now(),
    )  # fmt: skip
    PodUsage.objects.create(cluster=ward.cluster, uid="0", node="gpu-2", run=gang.pk)
    drain.drain(ward.cast.admin, node, 0)
    drain.pass_due()
    assert holder.drained == [gang.pk]


def test_a_second_drain_changes_nothing_and_opening_the_node_cancels_it(
    ward: Ward, api: PlayedApi, node: Node
) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    assert drain.drain(ward.cast.admin, node, 10)
    assert not drain.drain(ward.cast.admin, node, 1)
    assert drain.uncordon(ward.cast.admin, node)
    assert open_codes() == [] and Node.objects.get(name=NODE).out_code == ""
    assert story(alices) == [("node_drains", "warning"), ("ailment_over", "info")]


def test_a_drain_is_cancelled_when_somebody_opens_the_node_by_hand(
    ward: Ward, api: PlayedApi, node: Node
) -> None:
    drain.drain(ward.cast.admin, node, 60)
    Trouble.objects.update(since=timezone.now() - timedelta(minutes=5))
    ward.judge()
    assert open_codes() == ["node_drains"]
    ward.node(unschedulable=False)
    assert open_codes() == []


def test_an_admin_can_forget_a_silent_agent_and_its_reports(ward: Ward, node: Node) -> None:
    ward.agent("driver_not_loaded")
    assert not drain.forget_agent(ward.cast.admin, node)  # it tells
    AgentState.objects.update(seen_at=timezone.now() - timedelta(days=1))
    ward.judge()
    assert open_codes() == ["agent_silent", "gpu_driver_not_loaded"]
    assert drain.forget_agent(ward.cast.admin, node)
    node.refresh_from_db()
    assert (open_codes(), node.gpus_out_code, node.cluster.gpus.count()) == ([], "", 0)
    assert AuditEntry.objects.filter(action="cluster.forget_agent").count() == 1
    assert not drain.forget_agent(ward.cast.admin, node)


def test_nodes_are_closed_drained_and_opened_over_rest(ward: Ward, api: PlayedApi) -> None:
    admin = script(ward.cast.admin)
    closed = ask(admin, "POST", f"nodes/{NODE}/cordon/", {"why": "a fan is loud"})
    assert (closed.status_code, closed.json()) == (200, {"cluster": "main", "name": NODE, "changed": True})
    assert body(api)["metadata"]["annotations"][drain.CORDONED_WHY] == "a fan is loud"
    assert ask(admin, "POST", f"nodes/{NODE}/drain/", {"minutes": 5}).json()["changed"]
    assert not ask(admin, "POST", f"nodes/{NODE}/drain/", {"minutes": 5}).json()["changed"]
    assert ask(admin, "POST", f"nodes/{NODE}/uncordon/").json()["changed"]
    assert not drain.open_drain(Node.objects.get(name=NODE)).exists()
    for wrong in ({"minutes": -1}, {"minutes": True}, {"why": "x" * 201}, {"hours": 1}):
        assert ask(admin, "POST", f"nodes/{NODE}/drain/", wrong).status_code == 400
    assert ask(admin, "POST", "nodes/nowhere/cordon/").status_code == 404
    other = Cluster.objects.create(slug="other", name="Other")
    Node.objects.create(cluster=other, name=NODE)
    unclear = ask(admin, "POST", f"nodes/{NODE}/cordon/")
    assert (unclear.status_code, unclear.json()["error"]["code"]) == (409, "which_cluster")
    assert ask(admin, "POST", f"nodes/{NODE}/cordon/?cluster=main").status_code == 200


def test_in_web_a_request_with_a_key_waits_for_the_worker_and_is_answered_once(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ROLE = "web"
    waits = iter([{"done": True}])
    monkeypatch.setattr(running, "_waited_for", lambda row: next(waits))
    admin, key = script(ward.cast.admin), {"Idempotency-Key": "close"}
    first, again = (ask(admin, "POST", f"nodes/{NODE}/cordon/", None, **key) for _ in "12")
    assert (first.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
