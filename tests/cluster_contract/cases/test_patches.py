"""Patches: merge, JSON and strategic, with the directives that kubectl sends."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj


def container(name: str, **more: Any) -> Obj:
    return {"name": name, "image": "local/none:1", **more}


@pytest.fixture
def path(kube: Kube, space: str) -> str:
    """Path of a deployment of no pods with two containers."""
    sets = f"/apis/apps/v1/namespaces/{space.rpartition('/')[2]}/deployments"
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]
    volumes = [{"name": "v", "emptyDir": {}}]
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [container("one", env=env), container("two")], "volumes": volumes},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    kube.create(sets, {"metadata": {"name": "d", "finalizers": ["example.org/a"]}, "spec": spec})
    kube.call("PATCH", f"{sets}/d", {"metadata": {"finalizers": None}}, "merge")
    return f"{sets}/d"


def in_template(**spec: Any) -> Obj:
    return {"spec": {"template": {"spec": spec}}}


def patched(kube: Kube, path: str, patch: Any, kind: str = "strategic") -> Obj:
    code, found = kube.call("PATCH", path, patch, kind, dryRun="All")
    assert code == 200, found
    return dict(found["spec"]["template"]["spec"])


def names(items: list[Obj]) -> list[str]:
    return [i["name"] for i in items]


def test_a_merge_patch_replaces_lists_whole_and_null_removes(kube: Kube, path: str) -> None:
    spec = patched(kube, path, in_template(containers=[container("new")], volumes=None), "merge")
    assert names(spec["containers"]) == ["new"]
    assert "volumes" not in spec


def test_a_strategic_patch_finds_list_items_by_their_key(kube: Kube, path: str) -> None:
    patch = in_template(containers=[{"name": "two", "image": "local/other:2"}, container("three")])
    spec = patched(kube, path, patch)
    assert {c["name"]: c["image"] for c in spec["containers"]} == {
        "one": "local/none:1",
        "two": "local/other:2",
        "three": "local/none:1",
    }


def test_a_strategic_patch_deletes_one_item(kube: Kube, path: str) -> None:
    env = [{"name": "B", "$patch": "delete"}]
    spec = patched(kube, path, in_template(containers=[{"name": "one", "env": env}]))
    assert names(spec["containers"][0]["env"]) == ["A", "C"]


def test_a_strategic_patch_replaces_a_list_that_it_says_to_replace(kube: Kube, path: str) -> None:
    spec = patched(kube, path, in_template(containers=[{"$patch": "replace"}, container("only")]))
    assert names(spec["containers"]) == ["only"]


def test_a_strategic_patch_replaces_a_map_that_it_says_to_replace(kube: Kube, path: str) -> None:
    patch = {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}
    code, found = kube.call("PATCH", path, patch, "strategic", dryRun="All")
    assert (code, found["spec"]["strategy"]) == (200, {"type": "Recreate"})


def test_the_keys_that_are_not_retained_go(kube: Kube, path: str) -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    code, found = kube.call("PATCH", path, patch, "strategic", dryRun="All")
    assert (code, found["spec"]["strategy"]) == (200, {"type": "Recreate"})
    volume = {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}
    (kept,) = patched(kube, path, in_template(volumes=[volume]))["volumes"]
    assert kept == {"name": "v", "hostPath": {"path": "/x", "type": ""}}


def test_items_come_in_the_order_that_the_patch_sets(kube: Kube, path: str) -> None:
    order = [{"name": "C"}, {"name": "A"}]
    one = {"name": "one", "$setElementOrder/env": order, "env": [{"name": "A", "value": "new"}]}
    spec = patched(kube, path, in_template(containers=[one]))
    found = [e["name"] for e in spec["containers"][0]["env"]]
    assert found.index("C") < found.index("A")
    assert sorted(found) == ["A", "B", "C"]


def test_members_of_a_set_are_added_and_deleted(kube: Kube, space: str) -> None:
    maps = f"{space}/configmaps"
    kube.create(maps, {"metadata": {"name": "m", "finalizers": ["example.org/a", "example.org/b"]}})
    patch = {
        "metadata": {
            "finalizers": ["example.org/c"],
            "$deleteFromPrimitiveList/finalizers": ["example.org/a"],
        }
    }
    _, found = kube.call("PATCH", f"{maps}/m", patch, "strategic")
    assert sorted(found["metadata"]["finalizers"]) == ["example.org/b", "example.org/c"]
    kube.call("PATCH", f"{maps}/m", {"metadata": {"finalizers": None}}, "merge")


def test_lists_without_a_key_are_replaced(kube: Kube, path: str) -> None:
    for args in (["a", "b"], ["c"]):
        kube.call("PATCH", path, in_template(containers=[{"name": "one", "args": args}]), "strategic")
    found = kube.get(path)["spec"]["template"]["spec"]
    assert found["containers"][0]["args"] == ["c"]


def test_an_item_without_its_key_is_refused(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, in_template(containers=[{"image": "x"}]), "strategic")
    assert (code, told["message"]) == (500, "map: map[image:x] does not contain declared merge key: name")


def test_a_directive_that_there_is_not_is_refused(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, {"spec": {"$patch": "foo"}}, "strategic")
    assert (code, told["message"]) == (500, "unknown patch type: foo in map: map[$patch:foo]")


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"spec": {"replicas": "x"}}, '"map[spec:map[replicas:x]]": unrecognized type: int32'),
        ({"spec": {"template": "x"}}, '"map[spec:map[template:x]]": cannot restore struct from: string'),
        (
            {"spec": {"speed": 1}},
            '"map[spec:map[speed:1]]": strict decoding error: unknown field "spec.speed"',
        ),
    ],
)
def test_a_strategic_patch_that_makes_no_object_is_refused_whole(
    kube: Kube, path: str, patch: Obj, why: str
) -> None:
    code, told = kube.call("PATCH", path, patch, "strategic", fieldValidation="Strict")
    assert (code, told["reason"]) == (422, "Invalid")
    assert told["message"] == f' "" is invalid: patch: Invalid value: {why}'
    assert told["details"] == {
        "causes": [{"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": "patch"}]
    }


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (
            {"spec": {"replicas": "x"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ({"spec": {"speed": 1}}, 'strict decoding error: unknown field "spec.speed"'),
        (
            {"kind": "Pod"},
            'no kind "Pod" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_a_merge_patch_that_makes_no_object_shows_what_it_made(
    kube: Kube, path: str, patch: Obj, why: str
) -> None:
    code, told = kube.call("PATCH", path, patch, "merge", fieldValidation="Strict")
    assert code == 422
    assert told["message"].startswith(' "" is invalid: patch: Invalid value: "{')
    assert told["message"].endswith(f'}}": {why}')


@pytest.mark.parametrize(
    ("kind", "patch", "why"),
    [
        (
            "merge",
            [],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "json",
            {},
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("strategic", [], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_a_patch_of_the_wrong_shape_is_refused(
    kube: Kube, path: str, kind: str, patch: Any, why: str
) -> None:
    code, told = kube.call("PATCH", path, patch, kind)
    assert (code, told["message"]) == (400, why)


@pytest.mark.parametrize(
    "steps",
    [
        [{"op": "test", "path": "/spec/replicas", "value": 3}],
        [{"op": "remove", "path": "/spec/nothing"}],
        [{"op": "turn", "path": "/spec"}],
        [{"op": "add", "path": "/spec/nothing/below", "value": 1}],
    ],
)
def test_a_step_of_a_json_patch_that_fails_fails_all(kube: Kube, path: str, steps: list[Obj]) -> None:
    ahead = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    code, told = kube.call("PATCH", path, [*ahead, *steps], "json")
    assert (code, told["reason"]) == (422, "Invalid")
    assert told["message"] == "the server rejected our request due to an error in our request"
    assert kube.get(path)["spec"]["replicas"] == 0


def test_a_json_patch_moves_copies_and_escapes(kube: Kube, space: str) -> None:
    maps = f"{space}/configmaps"
    kube.create(maps, {"metadata": {"name": "m", "annotations": {"a/b": "1"}}, "data": {"x": "1"}})
    steps = [
        {"op": "test", "path": "/metadata/annotations/a~1b", "value": "1"},
        {"op": "copy", "from": "/data/x", "path": "/data/y"},
        {"op": "move", "from": "/data/x", "path": "/data/z"},
    ]
    code, found = kube.call("PATCH", f"{maps}/m", steps, "json")
    assert (code, found["data"]) == (200, {"y": "1", "z": "1"})


def test_a_patch_may_not_name_another_object(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, {"metadata": {"name": "other"}}, "merge")
    assert (code, told["message"]) == (
        400,
        "the name of the object (other) does not match the name on the URL (d)",
    )
    code, told = kube.call("PATCH", path, {"metadata": {"namespace": "other"}}, "merge")
    assert code == 400
    assert (
        told["message"]
        == "the namespace of the provided object does not match the namespace sent on the request"
    )


def test_a_patch_may_not_change_the_uid(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, {"metadata": {"uid": "other"}}, "merge")
    assert code == 422
    assert told["message"] == (
        'Deployment.apps "d" is invalid: metadata.uid: Invalid value: "other": field is immutable'
    )


def test_only_an_apply_may_be_forced(kube: Kube, path: str) -> None:
    code, told = kube.call("PATCH", path, {}, "merge", force="true")
    assert code == 422
    assert told["details"]["causes"][0]["message"] == "Forbidden: may not be specified for non-apply patch"
