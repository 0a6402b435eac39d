"""Drift as a pure decision: rows and objects in, findings out."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from clusters.site import registries
from monitoring.drift.compare import FENCES, Key, Row, State, drift, thing_of
from monitoring.models import What
from tests.monitoring.drift.objects import ID, NAMESPACE, body, entry, fences, of_a_run, of_an_earlier_run

HOME = f"ws-{ID}-home"


def found(state: State, *bodies: dict[str, Any]) -> set[tuple[str, str, str]]:
    rows = {ID: Row(ID, NAMESPACE, state)}
    findings = drift(rows, {NAMESPACE: "demo"}, map(thing_of, bodies), {HOME})
    return {(str(one.what), one.key.kind, one.key.name) for one in findings}


def test_a_running_workspace_with_all_its_objects_is_no_finding() -> None:
    home = body("PersistentVolumeClaim", HOME)
    assert found(State.RUNS, *fences(), home, *of_a_run()) == set()


def test_a_driver_claim_is_unwanted_once_no_pool_names_its_path() -> None:
    claim = thing_of(body("PersistentVolumeClaim", "driver-p-1", ""))
    assert list(drift({}, {NAMESPACE: "demo"}, [claim], {"driver-p-1"})) == []
    (finding,) = drift({}, {NAMESPACE: "demo"}, [claim], {"driver-p-2"})
    assert finding.what == What.UNWANTED


def test_sign_ons_to_registries_are_the_tenants_and_found_if_somebody_changed_them() -> None:
    secret = body("Secret", registries.NAME, "")
    assert found(State.RESTS, secret) == set()
    made = entry("berth", {"f:type": {}, "f:metadata": {"f:labels": {}}})
    secret["metadata"]["managedFields"] = [made, entry("kubectl", {"f:data": {"f:.dockerconfigjson": {}}})]
    assert found(State.RESTS, secret) == {("changed", "Secret", registries.NAME)}


def test_each_object_that_a_running_workspace_lacks_is_missing() -> None:
    for lacking in of_a_run():
        others = [one for one in of_a_run() if one["kind"] != lacking["kind"]]
        missing = ("missing", lacking["kind"], lacking["metadata"]["name"])
        assert found(State.RUNS, *others) == {missing}


def test_a_stopped_workspace_wants_its_volumes_may_have_its_ways_in_and_has_no_pod() -> None:
    home = body("PersistentVolumeClaim", HOME)
    assert found(State.RESTS, home) == set()
    assert found(State.RESTS, *of_a_run()) == {("unwanted", "Pod", f"ws-{ID}")}
    without = {ID: Row(ID, NAMESPACE, State.RESTS, has_address=False)}
    kinds = [one.key.kind for one in drift(without, {NAMESPACE: "demo"}, map(thing_of, of_a_run()), {HOME})]
    assert kinds == ["Service", "Pod"]


def test_the_ways_in_of_a_deleted_workspace_are_unwanted() -> None:
    service, secret, _pod = map(thing_of, of_a_run())
    findings = drift({}, {NAMESPACE: "demo"}, [service, secret])
    assert [(one.what, one.key.kind) for one in findings] == [
        (What.UNWANTED, "Service"), (What.UNWANTED, "Secret"),
    ]  # fmt: skip


def test_what_a_stopped_workspace_keeps_is_compared_from_its_next_start() -> None:
    service = body("Service", f"ws-{ID}", "")
    assert found(State.RESTS, service) == set()
    bodies = [service if one["kind"] == "Service" else one for one in of_a_run()]
    assert found(State.RUNS, *bodies) == {("changed", "Service", f"ws-{ID}")}


def test_a_run_of_an_earlier_version_is_no_finding_until_it_ends() -> None:
    earlier = of_an_earlier_run()
    assert found(State.RUNS, *earlier) == set()
    assert found(State.RUNS, *earlier[:-1]) == {("missing", "Pod", f"ws-{ID}")}
    # What it owns is deleted with it.
    assert found(State.RESTS, *earlier) == {("unwanted", "StatefulSet", f"ws-{ID}")}


def test_a_set_without_a_pod_is_unwanted() -> None:
    empty = of_an_earlier_run()[0] | {"status": {"replicas": 0}}
    for state in (State.RUNS, State.RESTS):
        assert found(state, *of_a_run(), empty) >= {("unwanted", "StatefulSet", f"ws-{ID}")}
    elsewhere = body("StatefulSet", f"ws-{ID}", namespace="berth-second") | {"status": {"replicas": 1}}
    assert found(State.RUNS, *of_a_run(), elsewhere) == {("unwanted", "StatefulSet", f"ws-{ID}")}


def test_start_files_belong_to_a_tenants_namespace_also_if_no_pod_uses_them() -> None:
    files = body("ConfigMap", "berth-start-0123", "")
    assert found(State.RESTS, files) == set()
    (finding,) = drift({}, {}, [thing_of(files)])
    assert finding.what == What.UNWANTED


def test_an_unbound_pvc_is_wanted() -> None:
    assert found(State.RESTS, body("PersistentVolumeClaim", HOME)) == set()


def test_a_workspace_in_transition_has_no_findings() -> None:
    odd = body("Secret", "copy")
    assert found(State.MOVES, odd, *of_a_run()[2:]) == set()


def test_an_object_that_is_being_deleted_is_neither_unwanted_nor_missing() -> None:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert found(State.MOVES, body("Secret", "x", str(uuid4()), **gone)) == set()
    going = [one | {"metadata": one["metadata"] | gone} for one in of_a_run()]
    assert found(State.RUNS, *going) == set()


def test_an_object_that_no_row_knows_is_unwanted() -> None:
    other = uuid4()
    for kind, name, label in (
        ("Secret", f"ws-{other}", str(other)),
        ("Secret", "x", "no-uuid"),
        ("ConfigMap", "x", ""),
        ("Namespace", "berth-gone", ""),
    ):
        assert found(State.MOVES, body(kind, name, label)) == {("unwanted", kind, name)}


def test_a_copy_of_a_wanted_object_is_unwanted() -> None:
    assert found(State.RUNS, *of_a_run(), body("Service", "copy")) == {("unwanted", "Service", "copy")}
    elsewhere = body("Service", f"ws-{ID}", namespace="berth-second")
    assert found(State.RUNS, *of_a_run(), elsewhere) == {("unwanted", "Service", f"ws-{ID}")}


def test_a_tenants_namespace_wants_its_fences() -> None:
    namespace = body("Namespace", NAMESPACE, "")
    everywhere = set(FENCES.items()) - {("ResourceQuota", "berth")}
    assert found(State.RESTS, namespace) == {("missing", kind, name) for kind, name in everywhere}
    assert found(State.RESTS) == set()


def test_an_object_that_lost_its_workspace_label_is_changed_and_never_unwanted() -> None:
    run = of_a_run()
    for label in ("", str(uuid4())):
        unlabelled = body("Secret", f"ws-{ID}", label)
        bodies = [unlabelled if one["kind"] == "Secret" else one for one in run]
        assert found(State.RUNS, *bodies) == {("changed", "Secret", f"ws-{ID}")}
    rows = {ID: Row(ID, NAMESPACE, State.RUNS)}
    things = [thing_of(body("Secret", f"ws-{ID}", ""))]
    (one,) = (each for each in drift(rows, {}, things) if each.differences)
    assert [difference.path for difference in one.differences] == ["metadata.labels.berth.dev/workspace"]


def test_a_finding_names_its_tenant_and_workspace() -> None:
    rows = {ID: Row(ID, NAMESPACE, State.RUNS)}
    findings = list(drift(rows, {NAMESPACE: "demo"}, [thing_of(one) for one in of_a_run()[1:]]))
    assert [(one.what, one.key, one.workspace, one.tenant) for one in findings] == [
        (What.MISSING, Key("Service", NAMESPACE, f"ws-{ID}"), ID, "demo")
    ]
