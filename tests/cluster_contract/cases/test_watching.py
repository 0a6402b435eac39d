"""Watches: what each watcher sees, from which version on, and lists sent as a watch."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj


@pytest.fixture
def maps(kube: Kube, space: str) -> str:
    """Path of one config map."""
    path = f"{space}/configmaps"
    kube.create(path, {"metadata": {"name": "one", "labels": {"k": "v"}}, "data": {"a": "1"}})
    return path


def told(events: list[Obj]) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


def version(kube: Kube, path: str) -> str:
    return str(kube.get(path)["metadata"]["resourceVersion"])


def test_two_watchers_see_the_same_changes_in_the_same_order(kube: Kube, maps: str) -> None:
    since = version(kube, maps)

    def act() -> None:
        kube.create(maps, {"metadata": {"name": "two"}})
        kube.call("PATCH", f"{maps}/two", {"data": {"a": "2"}}, "merge")
        kube.call("DELETE", f"{maps}/two")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(kube.watch, maps, act, count=3, resourceVersion=since)
        second = pool.submit(kube.watch, maps, count=3, resourceVersion=since)
    assert told(first.result()) == [("ADDED", "two"), ("MODIFIED", "two"), ("DELETED", "two")]
    assert first.result() == second.result()
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in first.result()]
    assert versions == sorted(set(versions))


def test_a_watch_from_a_version_tells_what_happened_since(kube: Kube, maps: str) -> None:
    since = version(kube, maps)
    kube.call("PATCH", f"{maps}/one", {"data": {"a": "2"}}, "merge")
    assert told(kube.watch(maps, count=1, resourceVersion=since)) == [("MODIFIED", "one")]


def test_a_watch_by_a_label_sees_objects_come_and_go_as_the_label_does(kube: Kube, maps: str) -> None:
    since = version(kube, maps)
    for value in ("other", "v"):
        kube.call("PATCH", f"{maps}/one", {"metadata": {"labels": {"k": value}}}, "merge")
    events = kube.watch(maps, count=2, labelSelector="k=v", resourceVersion=since)
    assert told(events) == [("DELETED", "one"), ("ADDED", "one")]
    assert events[0]["object"]["metadata"]["labels"] == {"k": "v"}


def test_a_watch_of_one_name_sees_that_one_alone(kube: Kube, maps: str) -> None:
    since = version(kube, maps)
    kube.create(maps, {"metadata": {"name": "two"}})
    kube.call("DELETE", f"{maps}/one")
    events = kube.watch(maps, count=1, fieldSelector="metadata.name=one", resourceVersion=since)
    assert told(events) == [("DELETED", "one")]


def test_the_version_of_a_deletion_is_later_than_that_of_the_object(kube: Kube, maps: str) -> None:
    since = version(kube, maps)
    had = kube.get(f"{maps}/one")["metadata"]["resourceVersion"]
    kube.call("DELETE", f"{maps}/one")
    (event,) = kube.watch(maps, count=1, resourceVersion=since)
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(had)


def test_a_list_that_comes_as_a_watch_ends_with_a_bookmark(kube: Kube, maps: str) -> None:
    asked: dict[str, Any] = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    *added, last = kube.watch(maps, count=2, fieldSelector="metadata.name=one", **asked)
    assert told(added) == [("ADDED", "one")]
    assert last["type"] == "BOOKMARK"
    assert last["object"]["kind"] == "ConfigMap"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(last["object"]["metadata"]["resourceVersion"]) > 0


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            {"sendInitialEvents": "true"},
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ],
)
def test_a_watch_whose_options_contradict_each_other_is_refused(
    kube: Kube, maps: str, asked: dict[str, Any], why: str
) -> None:
    code, refused = kube.call("GET", maps, watch="1", **asked)
    assert (code, refused["reason"]) == (422, "Invalid")
    assert refused["details"]["causes"][0]["message"] == f"Forbidden: {why}"


def test_who_wants_no_list_first_sees_only_what_comes(kube: Kube, maps: str) -> None:
    asked: dict[str, Any] = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    with kube.open("GET", maps, watch="1", timeoutSeconds="30", **asked) as answer:
        kube.create(maps, {"metadata": {"name": "two"}})
        assert told([json.loads(next(answer))]) == [("ADDED", "two")]


@pytest.mark.slow
def test_a_streamed_list_from_the_future_is_an_error_in_the_stream(kube: Kube, maps: str) -> None:
    asked: dict[str, Any] = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    events = kube.watch(maps, seconds=4, resourceVersion="99999999", **asked)
    assert [(e["type"], e["object"]["code"], e["object"]["reason"]) for e in events] == [
        ("ERROR", 504, "Timeout")
    ]


def test_a_watch_as_a_table_sends_rows(kube: Kube, maps: str) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    events = kube.watch(maps, count=1, headers=accept, fieldSelector="metadata.name=one")
    assert events[0]["object"]["kind"] == "Table"
    assert events[0]["object"]["rows"][0]["cells"][:2] == ["one", 1]
