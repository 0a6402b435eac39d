"""Drift as a pure decision: rows and objects in, findings out."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from monitoring.drift.compare import FENCES, Key, Row, State, drift, thing_of
from monitoring.models import What
from tests.monitoring.drift.objects import ID, NAMESPACE, body, fences, of_a_run

HOME = f"ws-{ID}-home"


def found(
    state: State, *bodies: dict[str, Any], volumes: frozenset[str] = frozenset()
) -> set[tuple[str, str, str]]:
    rows = {ID: Row(ID, NAMESPACE, state, volumes)}
    findings = drift(rows, {NAMESPACE: "demo"}, map(thing_of, bodies))
    return {(str(one.what), one.key.kind, one.key.name) for one in findings}


def test_what_runs_with_all_that_it_wants_is_no_finding() -> None:
    home = body("PersistentVolumeClaim", HOME)
    assert found(State.RUNS, *fences(), home, *of_a_run(), volumes=frozenset({HOME})) == set()


def test_a_driver_claim_is_unwanted_once_no_pool_names_its_path() -> None:
    claim = thing_of(body("PersistentVolumeClaim", "driver-p-1", ""))
    assert list(drift({}, {NAMESPACE: "demo"}, [claim], {"driver-p-1"})) == []
    (finding,) = drift({}, {NAMESPACE: "demo"}, [claim], {"driver-p-2"})
    assert finding.what == What.UNWANTED


def test_each_thing_that_what_runs_lacks_is_missing() -> None:
    for lacking in of_a_run():
        others = [one for one in of_a_run() if one["kind"] != lacking["kind"]]
        missing = ("missing", lacking["kind"], lacking["metadata"]["name"])
        assert found(State.RUNS, *others) == {missing}
    assert ("missing", "PersistentVolumeClaim", HOME) in found(State.RESTS, volumes=frozenset({HOME}))


def test_what_rests_wants_its_volumes_and_nothing_of_a_run() -> None:
    home = body("PersistentVolumeClaim", HOME)
    assert found(State.RESTS, home, volumes=frozenset({HOME})) == set()
    # The pod and the rest are deleted with the StatefulSet.
    of_set = {"ownerReferences": [{"uid": f"StatefulSet/ws-{ID}"}]}
    run = of_a_run()
    owned = [run[0], *(one | {"metadata": one["metadata"] | of_set} for one in run[1:])]
    assert found(State.RESTS, *owned) == {("unwanted", "StatefulSet", f"ws-{ID}")}


def test_a_claim_that_is_not_bound_yet_is_wanted_though_it_holds_no_data() -> None:
    assert found(State.RESTS, body("PersistentVolumeClaim", HOME)) == set()


def test_while_something_is_done_about_a_workspace_nothing_of_it_is_a_finding() -> None:
    odd = body("Secret", "copy")
    assert found(State.MOVES, odd, *of_a_run()[2:], volumes=frozenset({HOME})) == set()


def test_what_is_being_deleted_is_neither_unwanted_nor_missing() -> None:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert found(State.MOVES, body("Secret", "x", str(uuid4()), **gone)) == set()
    going = [one | {"metadata": one["metadata"] | gone} for one in of_a_run()]
    assert found(State.RUNS, *going) == set()


def test_what_no_row_knows_is_unwanted() -> None:
    other = uuid4()
    assert found(State.MOVES, body("Secret", f"ws-{other}", str(other))) == {
        ("unwanted", "Secret", f"ws-{other}")
    }
    assert found(State.MOVES, body("Secret", "x", "no-uuid")) == {("unwanted", "Secret", "x")}
    assert found(State.MOVES, body("ConfigMap", "x", "")) == {("unwanted", "ConfigMap", "x")}
    assert found(State.MOVES, body("Namespace", "berth-gone", "")) == {
        ("unwanted", "Namespace", "berth-gone")
    }


def test_a_copy_beside_what_is_wanted_is_unwanted() -> None:
    assert found(State.RUNS, *of_a_run(), body("Service", "copy")) == {("unwanted", "Service", "copy")}
    elsewhere = body("Service", f"ws-{ID}", namespace="berth-second")
    assert found(State.RUNS, *of_a_run(), elsewhere) == {("unwanted", "Service", f"ws-{ID}")}


def test_a_tenants_fences_are_wanted_where_its_namespace_is() -> None:
    namespace = body("Namespace", NAMESPACE, "")
    everywhere = set(FENCES.items()) - {("ResourceQuota", "berth")}
    assert found(State.RESTS, namespace) == {("missing", kind, name) for kind, name in everywhere}
    assert found(State.RESTS) == set()


def test_what_lost_the_label_of_its_workspace_is_changed_and_never_unwanted() -> None:
    run = of_a_run()
    for label in ("", str(uuid4())):
        unlabelled = body("Secret", f"ws-{ID}", label)
        bodies = [unlabelled if one["kind"] == "Secret" else one for one in run]
        assert found(State.RUNS, *bodies) == {("changed", "Secret", f"ws-{ID}")}
    rows = {ID: Row(ID, NAMESPACE, State.RUNS)}
    (one,) = (
        each for each in drift(rows, {}, [thing_of(body("Secret", f"ws-{ID}", ""))]) if each.differences
    )
    assert [difference.path for difference in one.differences] == ["metadata.labels.berth.dev/workspace"]


def test_a_finding_says_of_whose_tenant_and_workspace_it_is() -> None:
    rows = {ID: Row(ID, NAMESPACE, State.RUNS)}
    findings = list(drift(rows, {NAMESPACE: "demo"}, [thing_of(one) for one in of_a_run()[1:]]))
    assert [(one.what, one.key, one.workspace, one.tenant) for one in findings] == [
        (What.MISSING, Key("StatefulSet", NAMESPACE, f"ws-{ID}"), ID, "demo")
    ]
