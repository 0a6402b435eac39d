"""Scheduling: the node that a pod gets, or the message why it gets none. The nodes are for the case alone."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj

CARD = "example.org/card"
TAINT = "example.org/test"


class Field:
    """Pair of nodes to which nothing else is scheduled: `roomy` with 2 cards, `small` with 1."""

    def __init__(self, kube: Kube, space: str, image: str):
        self.kube, self.space, self.image = kube, space, image
        self.own = uuid.uuid4().hex[:8]
        self.taint = {"key": TAINT, "value": self.own, "effect": "NoSchedule"}
        self.roomy = self.node("roomy", 2, {"zone": "a", "memory": "81920"})
        self.small = self.node("small", 1, {"zone": "b", "memory": "40960"})

    def node(self, name: str, cards: int, labels: dict[str, str]) -> str:
        name = f"{name}-{self.own}"
        labels = {"example.org/own": self.own, "kubernetes.io/hostname": name, **labels}
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "5", CARD: str(cards)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        self.kube.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": [self.taint]},
                "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
            },
        )
        self.change(name, taints=[self.taint])  # removes not-ready, which a new node gets
        return name

    def change(self, node: str, **spec: Any) -> None:
        assert self.kube.call("PATCH", f"/api/v1/nodes/{node}", {"spec": spec}, "merge")[0] == 200

    def taints(self, node: str, *more: Obj) -> None:
        self.change(node, taints=[self.taint, *more])

    def body(self, name: str, cards: int = 0, cpu: str = "10m", **spec: Any) -> Obj:
        amounts = {"cpu": cpu} | ({CARD: str(cards)} if cards else {})
        container: Obj = {"name": "main", "image": self.image}
        container["resources"] = {"requests": amounts, "limits": {CARD: str(cards)} if cards else {}}
        tolerations = [{"key": TAINT, "operator": "Exists"}, *spec.pop("tolerations", [])]
        where = {"nodeSelector": {"example.org/own": self.own}, "terminationGracePeriodSeconds": 0}
        given = {"containers": [container], "tolerations": tolerations, **where, **spec}
        return {"metadata": {"name": name, "labels": {"app": name}}, "spec": given}

    def create(self, name: str, cards: int = 0, cpu: str = "10m", **spec: Any) -> None:
        self.kube.create(f"{self.space}/pods", self.body(name, cards, cpu, **spec))

    def node_of(self, name: str) -> str:
        """Wait until the pod has a node, and return the node."""
        found = self.kube.until(f"{self.space}/pods/{name}", lambda o: bool(o["spec"].get("nodeName")))
        return str(found["spec"]["nodeName"])

    def goes_to(self, name: str, cards: int = 0, cpu: str = "10m", **spec: Any) -> str:
        self.create(name, cards, cpu, **spec)
        return self.node_of(name)

    def refused(self, name: str) -> str:
        """Wait for the scheduler's message about our two nodes and preemption there, and return it."""
        found = self.kube.until(f"{self.space}/pods/{name}", lambda o: bool(unscheduled(o).get("message")))
        return str(unscheduled(found)["message"])

    def why_not(self, name: str, cards: int = 0, cpu: str = "10m", **spec: Any) -> str:
        self.create(name, cards, cpu, **spec)
        return self.refused(name)

    def delete(self, name: str) -> None:
        self.kube.call("DELETE", f"{self.space}/pods/{name}", {"gracePeriodSeconds": 0})

    def clear(self) -> None:
        for pod in self.kube.get(f"{self.space}/pods")["items"]:
            self.delete(pod["metadata"]["name"])
        for node in (self.roomy, self.small):
            self.kube.call("DELETE", f"/api/v1/nodes/{node}")


@pytest.fixture
def field(kube: Kube, space: str, image: str) -> Iterator[Field]:
    field = Field(kube, space, image)
    yield field
    field.clear()


def unscheduled(pod: Obj) -> Obj:
    conditions = pod["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), {})


def requiring(*expressions: Obj, **fields: Any) -> Obj:
    term = {"matchExpressions": list(expressions), **fields}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def near(app: str, key: str = "zone", kind: str = "podAffinity") -> Obj:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class TestResources:
    def test_what_is_held_is_not_given_twice_and_is_given_again_when_it_is_free(self, field: Field) -> None:
        assert field.goes_to("first", cards=2) == field.roomy
        told = field.why_not("second", cards=2)
        assert f"2 Insufficient {CARD}" in told
        assert "1 No preemption victims found for incoming pod" in told
        field.delete("first")
        assert field.node_of("second") == field.roomy

    def test_what_no_node_has_is_not_helped_by_preemption(self, field: Field) -> None:
        told = field.why_not("greedy", cards=3, cpu="400")
        others = re.escape("node(s) didn't match Pod's node affinity/selector")
        assert re.fullmatch(
            rf"0/(\d+) nodes are available: 2 Insufficient cpu, 2 Insufficient {CARD}(, \d+ {others})?\."
            r" no new claims to deallocate, preemption: 0/\1 nodes are available: \1 Preemption is not helpful"
            r" for scheduling\.",
            told,
        )

    def test_condition_and_event_say_the_same(self, kube: Kube, space: str, field: Field) -> None:
        told = field.why_not("greedy", cards=3)
        path = f"{space}/events?fieldSelector=involvedObject.name=greedy,reason=FailedScheduling"
        (event,) = kube.until(path, lambda o: bool(o["items"]))["items"]
        assert (event["message"], event["type"]) == (told, "Warning")

    def test_a_node_takes_as_many_pods_as_it_says(self, field: Field) -> None:
        here = {"kubernetes.io/hostname": field.small}
        for n in range(5):
            assert field.goes_to(f"p{n}", nodeSelector=here) == field.small
        assert "1 Too many pods" in field.why_not("sixth", nodeSelector=here)


class TestSelectors:
    @pytest.mark.parametrize(
        ("operator", "values", "meets"),
        [
            ("In", ["81920", "1"], "roomy"),
            ("NotIn", ["81920"], "small"),
            ("Gt", ["40960"], "roomy"),
            ("Lt", ["40961"], "small"),
            ("Gt", ["81920"], ""),
            ("Gt", ["40.5"], ""),
        ],
        ids=lambda value: value if isinstance(value, str) else ",".join(value),
    )
    def test_labels_are_compared(self, field: Field, operator: str, values: list[str], meets: str) -> None:
        affinity = requiring({"key": "memory", "operator": operator, "values": values})
        if meets:
            assert field.goes_to("p", affinity=affinity) == getattr(field, meets)
        else:
            told = field.why_not("p", affinity=affinity)
            assert re.search(r"\d+ node\(s\) didn't match Pod's node affinity/selector", told)

    @pytest.mark.parametrize(("operator", "meets"), [("Exists", "roomy"), ("DoesNotExist", "small")])
    def test_a_label_may_just_be_there_or_not(self, field: Field, operator: str, meets: str) -> None:
        path = f"/api/v1/nodes/{field.roomy}"
        field.kube.call("PATCH", path, {"metadata": {"labels": {"only": ""}}}, "merge")
        affinity = requiring({"key": "only", "operator": operator})
        assert field.goes_to("p", affinity=affinity) == getattr(field, meets)

    def test_a_node_that_is_named_is_the_only_one(self, field: Field) -> None:
        names = [{"key": "metadata.name", "operator": "In", "values": [field.small]}]
        assert field.goes_to("p", affinity=requiring(matchFields=names)) == field.small
        nobody = [{"key": "metadata.name", "operator": "In", "values": ["nobody"]}]
        told = field.why_not("q", affinity=requiring(matchFields=nobody))
        assert "node(s) didn't satisfy plugin(s) [NodeAffinity]" in told

    @pytest.mark.parametrize(("heavier", "meets"), [("a", "roomy"), ("b", "small")])
    def test_of_two_wishes_the_heavier_counts(self, field: Field, heavier: str, meets: str) -> None:
        wishes = [
            {
                "weight": 90 if zone == heavier else 10,
                "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]},
            }
            for zone in "ab"
        ]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
        assert field.goes_to("p", affinity=affinity) == getattr(field, meets)


class TestTaints:
    def test_what_is_not_tolerated_is_not_entered(self, field: Field) -> None:
        field.taints(field.roomy, {"key": "reserved", "value": "x", "effect": "NoSchedule"})
        assert field.goes_to("p") == field.small
        assert "1 node(s) had untolerated taint(s)" in field.why_not("q", cards=2)
        equal = {"key": "reserved", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
        assert field.goes_to("r", cards=2, tolerations=[equal]) == field.roomy

    def test_a_preference_against_a_node_yields_to_need(self, field: Field) -> None:
        field.taints(field.roomy, {"key": "rather-not", "effect": "PreferNoSchedule"})
        assert field.goes_to("p") == field.small
        assert field.goes_to("q", cards=2) == field.roomy

    def test_a_cordoned_node_takes_nothing_new(self, field: Field) -> None:
        field.change(field.roomy, unschedulable=True)
        assert "1 node(s) were unschedulable" in field.why_not("p", cards=2)
        field.change(field.roomy, unschedulable=None, taints=[field.taint])
        assert field.node_of("p") == field.roomy


class TestGates:
    def test_a_pod_with_gates_is_not_looked_at_until_the_last_is_gone(self, field: Field) -> None:
        field.create("p", schedulingGates=[{"name": "example.org/a"}, {"name": "example.org/b"}])
        path = f"{field.space}/pods/p"
        told = unscheduled(field.kube.get(path))
        assert told["reason"] == "SchedulingGated"
        assert told["message"] == "Scheduling is blocked due to non-empty scheduling gates"
        for left in ([{"name": "example.org/b"}], []):
            assert "nodeName" not in field.kube.get(path)["spec"]
            gates = {"spec": {"schedulingGates": left}}
            assert field.kube.call("PATCH", path, gates, "merge")[0] == 200
        assert field.node_of("p")

    def test_gates_only_ever_go(self, field: Field) -> None:
        field.create("p", schedulingGates=[{"name": "example.org/a"}])
        more = {"spec": {"schedulingGates": [{"name": "example.org/a"}, {"name": "example.org/c"}]}}
        code, told = field.kube.call("PATCH", f"{field.space}/pods/p", more, "merge")
        assert code == 422
        assert "only deletion is allowed, but found new scheduling gate 'example.org/c'" in told["message"]


class TestNeighbours:
    def test_a_pod_goes_where_its_friend_is(self, field: Field) -> None:
        assert (
            field.goes_to("friend", nodeSelector={"zone": "b", "example.org/own": field.own}) == field.small
        )
        assert field.goes_to("p", affinity=near("friend")) == field.small

    def test_with_no_friend_anywhere_it_waits_until_there_is_one(self, field: Field) -> None:
        assert "2 node(s) didn't match pod affinity rules" in field.why_not("p", affinity=near("friend"))
        assert field.goes_to("friend") == field.node_of("p")

    def test_the_first_of_those_that_want_each_other_may_start(self, field: Field) -> None:
        assert field.goes_to("p", affinity=near("p"))

    def test_a_pod_keeps_away_from_whom_it_avoids_and_the_other_from_it(self, field: Field) -> None:
        there = {"example.org/own": field.own, "zone": "a"}
        field.goes_to("loud", nodeSelector=there)
        quiet = near("loud", kind="podAntiAffinity")
        assert field.goes_to("quiet", affinity=quiet) == field.small
        told = field.why_not("quiet-2", affinity=quiet, nodeSelector=there)
        assert "1 node(s) didn't match pod anti-affinity rules" in told
        too_near = field.body("late", nodeSelector={**there, "zone": "b"})
        too_near["metadata"]["labels"] = {"app": "loud"}
        field.kube.create(f"{field.space}/pods", too_near)
        assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in field.refused("late")

    def test_pods_are_spread_as_evenly_as_is_demanded(self, field: Field) -> None:
        evenly = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        evenly["labelSelector"] = {"matchLabels": {"group": "g"}}
        found = []
        for n in range(4):
            body = field.body(f"p{n}", topologySpreadConstraints=[evenly])
            body["metadata"]["labels"] = {"group": "g"}
            field.kube.create(f"{field.space}/pods", body)
            found.append(field.node_of(f"p{n}"))
        assert sorted(found) == sorted([field.roomy, field.small] * 2)
        by_rack = [evenly | {"topologyKey": "rack"}]
        told = field.why_not("p", topologySpreadConstraints=by_rack)
        assert "2 node(s) didn't match pod topology spread constraints (missing required label)" in told


class TestPriority:
    @pytest.fixture
    def important(self, field: Field) -> Iterator[str]:
        yield from self.made(field, "PreemptLowerPriority")

    @pytest.fixture
    def patient(self, field: Field) -> Iterator[str]:
        yield from self.made(field, "Never")

    def made(self, field: Field, policy: str) -> Iterator[str]:
        name, path = f"test-{policy.lower()}-{field.own}", "/apis/scheduling.k8s.io/v1/priorityclasses"
        field.kube.create(path, {"metadata": {"name": name}, "value": 100, "preemptionPolicy": policy})
        yield name
        field.kube.call("DELETE", f"{path}/{name}")

    def test_a_class_that_is_not_there_is_refused(self, field: Field) -> None:
        code, told = field.kube.call(
            "POST", f"{field.space}/pods", field.body("p", priorityClassName="test-absent")
        )
        assert (code, told["message"]) == (
            403,
            'pods "p" is forbidden: no PriorityClass with name test-absent was found',
        )

    def test_the_more_important_pod_takes_the_place(self, field: Field, important: str) -> None:
        field.goes_to("lesser", cards=2)
        field.create("greater", cards=2, priorityClassName=important)
        assert field.node_of("greater") == field.roomy
        path = f"{field.space}/events?fieldSelector=involvedObject.name=lesser,reason=Preempted"
        (event,) = field.kube.until(path, lambda o: bool(o["items"]))["items"]
        assert event["message"].startswith("Preempted by pod ")
        assert event["message"].endswith(f" on node {field.roomy}")

    def test_who_never_preempts_waits_and_says_so(self, field: Field, patient: str) -> None:
        field.goes_to("lesser", cards=2)
        told = field.why_not("patient", cards=2, priorityClassName=patient)
        assert told.endswith("preemption: not eligible due to preemptionPolicy=Never.")
        assert field.kube.get(f"{field.space}/pods/patient")["spec"]["priority"] == 100
