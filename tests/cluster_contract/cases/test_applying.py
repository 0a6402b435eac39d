"""Server-side apply: owners of fields, and conflicts between two that want the same field."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    body: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", **metadata}}
    return body | ({"data": data} if data else {})


def deployment(*env: tuple[str, str], **spec: Any) -> Obj:
    """Return a deployment of no pods, with one container."""
    container: Obj = {"name": "main", "image": "local/none:1"}
    container |= {"env": [{"name": n, "value": v} for n, v in env]} if env else {}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@pytest.fixture
def path(space: str) -> str:
    return f"{space}/configmaps/one"


@pytest.fixture
def workload(space: str) -> str:
    return f"/apis/apps/v1/namespaces/{space.rpartition('/')[2]}/deployments/d"


def owned(found: Obj) -> dict[str, Obj]:
    """Return the fields that each manager owns."""
    return {m["manager"]: m["fieldsV1"] for m in found["metadata"]["managedFields"]}


def env(found: Obj) -> list[str]:
    return [e["name"] for e in found["spec"]["template"]["spec"]["containers"][0].get("env", [])]


def test_a_field_left_out_of_the_next_apply_is_removed(kube: Kube, path: str) -> None:
    kube.apply(path, config_map({"kept": "1", "left": "2"}))
    code, found = kube.apply(path, config_map({"kept": "1"}))
    assert code == 200
    assert found["data"] == {"kept": "1"}


def test_two_managers_that_want_the_same_field_conflict_in_words(kube: Kube, path: str) -> None:
    kube.apply(path, config_map({"a": "1"}), manager="first", force=False)
    code, refused = kube.apply(path, config_map({"a": "2"}), manager="second", force=False)
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "first": .data.a'


def test_several_conflicts_are_told_by_manager(kube: Kube, workload: str) -> None:
    kube.apply(workload, deployment(("A", "1")), manager="one")
    kube.call("PATCH", workload, {"spec": {"paused": True}}, "merge")
    code, told = kube.apply(workload, deployment(("A", "2"), paused=False), manager="two", force=False)
    assert code == 409
    assert told["message"] == (
        'Apply failed with 2 conflicts: conflicts with "one":\n'
        '- .spec.template.spec.containers[name="main"].env[name="A"].value\n'
        'conflicts with "tests" using apps/v1:\n'
        "- .spec.paused"
    )
    assert {c["field"] for c in told["details"]["causes"]} == {
        '.spec.template.spec.containers[name="main"].env[name="A"].value',
        ".spec.paused",
    }


def test_who_forces_takes_the_field_over(kube: Kube, path: str) -> None:
    kube.apply(path, config_map({"a": "1", "b": "1"}), manager="one")
    code, found = kube.apply(path, config_map({"a": "2"}), manager="two", force=True)
    assert (code, found["data"]) == (200, {"a": "2", "b": "1"})
    assert owned(found) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_a_field_that_two_want_alike_stays_until_both_leave_it(kube: Kube, path: str) -> None:
    kube.apply(path, config_map({"a": "1"}), manager="one")
    kube.apply(path, config_map({"a": "1"}), manager="two", force=False)
    _, found = kube.apply(path, config_map(), manager="one")
    assert found["data"] == {"a": "1"}
    _, found = kube.apply(path, config_map(), manager="two")
    assert "data" not in found


def test_an_item_of_a_list_is_removed_with_its_key(kube: Kube, workload: str) -> None:
    kube.apply(workload, deployment(("A", "1"), ("B", "2")))
    code, found = kube.apply(workload, deployment(("B", "2")))
    assert (code, env(found)) == (200, ["B"])


def test_items_that_another_manager_added_stay(kube: Kube, workload: str) -> None:
    kube.apply(workload, deployment(("A", "1"), ("B", "2")), manager="one")
    kube.apply(workload, deployment(("C", "3"), ("A", "1")), manager="two", force=False)
    _, found = kube.apply(workload, deployment(), manager="one")
    assert env(found) == ["C", "A"]


def test_applied_items_come_in_the_order_of_the_applied_list(kube: Kube, workload: str) -> None:
    kube.apply(workload, deployment(("A", "1"), ("B", "2")), manager="one")
    _, found = kube.apply(workload, deployment(("C", "3"), ("A", "1")), manager="two", force=False)
    assert env(found) == ["C", "A", "B"]


def test_a_list_item_is_found_by_its_key_and_what_the_key_is_by_default(kube: Kube, space: str) -> None:
    path = f"{space}/services/s"
    body: Obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    kube.apply(path, body | {"spec": {"ports": [{"name": "x", "port": 80}]}}, manager="one")
    port = {"name": "x", "port": 80, "protocol": "TCP"}
    code, found = kube.apply(path, body | {"spec": {"ports": [port]}}, manager="two", force=False)
    assert (code, len(found["spec"]["ports"])) == (200, 1)
    assert list(owned(found)["two"]["f:spec"]["f:ports"]) == ['k:{"port":80,"protocol":"TCP"}']


def test_members_of_a_set_belong_to_who_added_them(kube: Kube, path: str) -> None:
    kube.apply(path, config_map(finalizers=["example.org/a"]), manager="one")
    _, found = kube.apply(path, config_map(finalizers=["example.org/b"]), manager="two")
    assert found["metadata"]["finalizers"] == ["example.org/a", "example.org/b"]
    _, found = kube.apply(path, config_map(), manager="one")
    assert found["metadata"]["finalizers"] == ["example.org/b"]
    kube.apply(path, config_map(), manager="two")


def test_a_selector_is_owned_whole(kube: Kube, workload: str) -> None:
    _, found = kube.apply(workload, deployment(), manager="one")
    assert owned(found)["one"]["f:spec"]["f:selector"] == {}


def test_an_apply_of_an_object_does_not_touch_its_status(kube: Kube, workload: str) -> None:
    code, found = kube.apply(workload, deployment() | {"status": {"collisionCount": 7}}, manager="one")
    assert code == 201
    assert "collisionCount" not in found["status"]
    assert "f:status" not in owned(found)["one"]


def test_an_apply_of_a_status_touches_nothing_else(kube: Kube, workload: str) -> None:
    kube.apply(workload, deployment(), manager="one")
    condition = {"type": "Checked", "status": "True"}
    body = deployment() | {"status": {"conditions": [condition]}}
    body["spec"]["replicas"] = 9
    code, found = kube.apply(f"{workload}/status", body, manager="checker")
    assert (code, found["spec"]["replicas"]) == (200, 0)
    assert list(owned(found)["checker"]) == ["f:status"]
    assert "Checked" in [c["type"] for c in found["status"]["conditions"]]


def test_an_apply_that_changes_nothing_changes_nothing(kube: Kube, path: str) -> None:
    _, first = kube.apply(path, config_map({"a": "1"}))
    _, again = kube.apply(path, config_map({"a": "1"}))
    assert again == first


def test_a_dry_apply_answers_and_keeps_nothing(kube: Kube, path: str) -> None:
    kube.apply(path, config_map({"a": "1"}))
    asked = {"fieldManager": "dry", "force": "true", "dryRun": "All"}
    code, found = kube.call("PATCH", path, config_map({"a": "2"}), "apply", **asked)  # type: ignore[arg-type]
    assert (code, found["data"]) == (200, {"a": "2"})
    assert kube.get(path)["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"colour": 1}, ".colour: field not declared in schema"),
        ({"data": {"a": 1}}, ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"data": []}, ".data: expected map, got &{[]}"),
    ],
)
def test_what_the_kind_cannot_hold_cannot_be_applied(kube: Kube, path: str, changed: Obj, why: str) -> None:
    code, told = kube.apply(path, config_map() | changed)
    assert code == 500
    assert told["message"] == f"failed to create typed patch object (/one; /v1, Kind=ConfigMap): {why}"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"replicas": "x"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"template": "x"}, ".spec.template: expected map, got &{x}"),
        ({"speed": 1}, ".spec.speed: field not declared in schema"),
    ],
)
def test_fields_deep_inside_are_told_by_their_path(kube: Kube, workload: str, spec: Obj, why: str) -> None:
    code, told = kube.apply(workload, deployment(**spec))
    assert code == 500
    assert told["message"] == f"failed to create typed patch object (/d; apps/v1, Kind=Deployment): {why}"


def test_a_list_may_not_name_an_item_twice(kube: Kube, workload: str) -> None:
    code, told = kube.apply(workload, deployment(("A", "1"), ("A", "2")))
    assert code == 500
    assert told["message"].endswith(
        '.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="A"]'
    )


def test_an_apply_names_its_manager_and_its_kind(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, config_map(), "apply")
    assert (code, told["details"]["causes"][0]["message"]) == (
        422,
        "Required value: is required for apply patch",
    )
    code, told = kube.apply(path, {"metadata": {"name": "one"}})
    assert code == 400
    assert told["message"].startswith("invalid object type: ")


def test_managed_fields_cannot_be_applied(kube: Kube, path: str) -> None:
    code, told = kube.apply(path, config_map(managedFields=[{"manager": "me"}]))
    assert (code, told["message"]) == (400, "metadata.managedFields must be nil")
