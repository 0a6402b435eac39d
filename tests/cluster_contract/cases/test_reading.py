"""Lists: selections, pages that show the same moment, and requested versions."""

import base64
import json
from typing import Any

import pytest

from devcluster.testing.kube import Kube

NOT_A_NUMBER = (
    'unable to parse requirement: values[0]: Invalid value: "x":'
    " for 'Gt', 'Lt' operators, the value must be an integer"
)


@pytest.fixture
def maps(kube: Kube, space: str) -> str:
    """Path of five config maps, c0 to c4."""
    path = f"{space}/configmaps"
    for n in range(5):
        kube.create(path, {"metadata": {"name": f"c{n}", "labels": {"n": str(n)}}, "data": {"a": "1"}})
    return path


def going_on(token: str) -> dict[str, Any]:
    return {"continue": token}


def names(found: dict[str, Any]) -> list[str]:
    return [o["metadata"]["name"] for o in found["items"] if o["metadata"].get("labels")]


def test_pages_show_one_moment_though_objects_change_in_between(kube: Kube, maps: str) -> None:
    first = kube.get(maps, limit=2)
    assert names(first) == ["c0", "c1"]
    assert first["metadata"]["remainingItemCount"] >= 3
    kube.call("DELETE", f"{maps}/c3")
    kube.call("PATCH", f"{maps}/c4", {"data": {"a": "2"}}, "merge")
    kube.create(maps, {"metadata": {"name": "c2b", "labels": {"n": "new"}}})
    rest = kube.get(maps, **going_on(first["metadata"]["continue"]))
    assert names(rest) == ["c2", "c3", "c4"]
    assert next(o for o in rest["items"] if o["metadata"]["name"] == "c4")["data"] == {"a": "1"}
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_list_at_an_exact_version_shows_what_was_there_then(kube: Kube, maps: str) -> None:
    then = kube.get(maps)["metadata"]["resourceVersion"]
    kube.call("DELETE", f"{maps}/c0")
    found = kube.get(maps, resourceVersion=then, resourceVersionMatch="Exact")
    assert names(found) == ["c0", "c1", "c2", "c3", "c4"]
    assert found["metadata"]["resourceVersion"] == then
    assert names(kube.get(maps, resourceVersion=then, resourceVersionMatch="NotOlderThan")) == [
        "c1",
        "c2",
        "c3",
        "c4",
    ]


@pytest.mark.parametrize(
    "asked", [{}, {"resourceVersionMatch": "NotOlderThan"}, {"resourceVersionMatch": "Exact"}]
)
def test_a_version_of_the_future_is_not_there_yet(kube: Kube, maps: str, asked: dict[str, Any]) -> None:
    code, told = kube.call("GET", maps, resourceVersion="99999999", **asked)
    assert (code, told["reason"]) == (504, "Timeout")
    assert told["message"].startswith("Timeout: Too large resource version: 99999999, current: ")
    assert told["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


def test_options_that_contradict_each_other_are_refused(kube: Kube, maps: str) -> None:
    code, told = kube.call("GET", maps, resourceVersionMatch="Exact")
    assert (code, told["reason"]) == (422, "Invalid")
    assert told["message"] == (
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden:'
        " resourceVersionMatch is forbidden unless resourceVersion is provided"
    )
    code, told = kube.call("GET", maps, resourceVersion="0", resourceVersionMatch="Exact")
    assert told["details"]["causes"][0]["message"] == (
        'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    )
    assert kube.call("GET", maps, sendInitialEvents="true")[0] == 422


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            {"v": "meta.k8s.io/v9", "rv": 1, "start": "a"},
            "server does not recognize this encoded version meta.k8s.io/v9",
        ),
        (
            {"v": "meta.k8s.io/v1", "rv": 0, "start": "a"},
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
    ],
)
def test_a_continue_token_that_is_none_is_refused(
    kube: Kube, maps: str, content: dict[str, Any], why: str
) -> None:
    token = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    code, told = kube.call("GET", maps, **going_on(token))
    assert (code, told["message"]) == (400, f"invalid continue token: continue key is not valid: {why}")


def test_pages_and_a_version_cannot_both_be_asked_for(kube: Kube, maps: str) -> None:
    token = kube.get(maps, limit=1)["metadata"]["continue"]
    code, told = kube.call("GET", maps, resourceVersion="5", **going_on(token))
    assert (code, told["message"]) == (400, "specifying resource version is not allowed when using continue")


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a==b,", "found '', expected: identifier after ','"),
        (
            "a>x",
            NOT_A_NUMBER,
        ),
    ],
)
def test_a_label_selector_that_cannot_be_read_is_refused_in_words(
    kube: Kube, maps: str, selector: str, why: str
) -> None:
    code, told = kube.call("GET", maps, labelSelector=selector)
    assert (code, told["reason"], told["message"]) == (400, "BadRequest", why)


def test_labels_are_compared_as_numbers_too(kube: Kube, maps: str) -> None:
    assert names(kube.get(maps, labelSelector="n>2")) == ["c3", "c4"]
    assert names(kube.get(maps, labelSelector="n<1,n")) == ["c0"]


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        ("pods", "field label not supported: spec.foo"),
        ("secrets", "field label not supported: spec.foo"),
        (
            "configmaps",
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_each_kind_says_in_its_way_that_it_does_not_select_by_a_field(
    kube: Kube, space: str, resource: str, why: str
) -> None:
    code, told = kube.call("GET", f"{space}/{resource}", fieldSelector="spec.foo=x")
    assert (code, told["message"]) == (400, why)


def test_jobs_name_themselves_when_they_refuse_a_field(kube: Kube) -> None:
    told = kube.get("/apis/batch/v1/jobs", fieldSelector="spec.foo=x")
    assert told["message"] == 'field label "spec.foo" not supported for Job'


def test_a_watch_of_one_path_is_a_read(kube: Kube, maps: str) -> None:
    code, found = kube.call("GET", f"{maps}/c0", watch="1")
    assert (code, found["kind"], found["metadata"]["name"]) == (200, "ConfigMap", "c0")


def test_numbers_among_the_options_must_be_numbers(kube: Kube, maps: str) -> None:
    code, told = kube.call("GET", maps, limit="x")
    assert (code, told["message"]) == (400, 'strconv.ParseInt: parsing "x": invalid syntax')
    code, told = kube.call("GET", maps, resourceVersion="x")
    assert code == 400
    assert told["message"].startswith('invalid resource version: resourceVersion: Invalid value: "x"')


def test_types_are_described_for_clients(kube: Kube) -> None:
    assert "apis/apps/v1" in kube.get("/openapi/v3")["paths"]
    schemas = kube.get("/openapi/v3/apis/apps/v1")["components"]["schemas"]
    whole = schemas["io.k8s.api.apps.v1.StatefulSet"]
    assert whole["x-kubernetes-group-version-kind"] == [
        {"group": "apps", "kind": "StatefulSet", "version": "v1"}
    ]
    env = schemas["io.k8s.api.core.v1.Container"]["properties"]["env"]
    assert (env["x-kubernetes-list-type"], env["x-kubernetes-patch-merge-key"]) == ("map", "name")
    assert set(schemas["io.k8s.api.apps.v1.StatefulSetSpec"]["required"]) == {"selector", "template"}


def test_a_put_names_its_object(kube: Kube, maps: str) -> None:
    code, told = kube.call("PUT", f"{maps}/c0", {"data": {"a": "2"}})
    assert code == 400
    assert (
        told["message"]
        == "the name of the object (c0 based on URL) was undeterminable: name must be provided"
    )


def test_pages_go_over_all_namespaces_in_one_order(kube: Kube, maps: str) -> None:
    asked: dict[str, Any] = {"labelSelector": "n", "limit": 2}
    found: list[str] = []
    page = kube.get("/api/v1/configmaps", **asked)
    while token := page["metadata"].get("continue"):
        found += [o["metadata"]["namespace"] + o["metadata"]["name"] for o in page["items"]]
        page = kube.get("/api/v1/configmaps", **asked, **going_on(token))
    found += [o["metadata"]["namespace"] + o["metadata"]["name"] for o in page["items"]]
    assert len(found) == len(set(found))
    assert {maps.split("/")[4] + f"c{n}" for n in range(5)} <= set(found)
