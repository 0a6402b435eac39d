"""Tests of the API against a real server over HTTP: the trial cluster, or the one of $BERTH_TEST_KUBECONFIG."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.api import Api
from clusters.errors import ClusterRefused
from clusters.kinds import KINDS, KUEUE
from devcluster.testing.waiting import until


def config_map(namespace: str, name: str = "app", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(namespace: str, **resources: str) -> dict[str, Any]:
    metadata = {"generateName": "try-", "namespace": namespace}
    container = {"name": "main", "image": "local/none:1", "resources": {"limits": resources}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def test_what_is_not_there_is_none(api: Api, namespace: str) -> None:
    assert api.get("ConfigMap", namespace, "absent") is None
    assert api.get("Namespace", None, "berth-absent") is None


def test_apply_makes_changes_and_leaves_what_is_the_same(api: Api, namespace: str) -> None:
    made = api.apply(config_map(namespace, a="1"))
    again = api.apply(config_map(namespace, a="1"))
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    changed = api.apply(config_map(namespace, b="2"))
    assert changed["data"] == {"b": "2"}
    assert changed["metadata"]["managedFields"][0]["manager"] == "berth"


def test_apply_takes_its_own_fields_back_and_leaves_those_of_others(api: Api, namespace: str) -> None:
    api.apply(config_map(namespace, a="1"))
    api.merge_patch("ConfigMap", namespace, "app", {"data": {"a": "other", "theirs": "kept"}})
    assert api.apply(config_map(namespace, a="1"))["data"] == {"a": "1", "theirs": "kept"}


def test_patches_of_what_is_gone_answer_none(api: Api, namespace: str) -> None:
    api.apply(config_map(namespace, a="1"))
    patched = api.json_patch("ConfigMap", namespace, "app", [{"op": "add", "path": "/data/b", "value": "2"}])
    assert patched is not None
    assert patched["data"] == {"a": "1", "b": "2"}
    assert api.json_patch("ConfigMap", namespace, "absent", [{"op": "remove", "path": "/data/b"}]) is None
    assert api.merge_patch("ConfigMap", namespace, "absent", {"data": {}}) is None


def test_a_deletion_says_whether_there_was_something(api: Api, namespace: str) -> None:
    uid = api.apply(config_map(namespace))["metadata"]["uid"]
    assert api.delete("ConfigMap", namespace, "app", uid="11111111-2222-3333-4444-555555555555") is False
    assert api.delete("ConfigMap", namespace, "app", uid=uid) is True
    assert api.delete("ConfigMap", namespace, "app", uid=uid) is False


def test_a_dry_run_makes_nothing(api: Api, namespace: str) -> None:
    api.try_create(pod(namespace, cpu="100m", memory="64Mi"))
    assert api.list("Pod", namespace=namespace) == []


def test_a_dry_run_tells_why_not(api: Api, namespace: str) -> None:
    hard = {"requests.nvidia.com/gpu": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": namespace}}
    api.apply({**quota, "spec": {"hard": hard}})
    until(lambda: (api.get("ResourceQuota", namespace, "q") or {}).get("status", {}).get("hard"))
    with pytest.raises(
        ClusterRefused, match=r"exceeded quota: q, requested: requests\.nvidia\.com/gpu=1"
    ) as raised:
        api.try_create(pod(namespace, **{"nvidia.com/gpu": "1", "cpu": "100m", "memory": "64Mi"}))
    assert raised.value.status == 403


def test_lists_select_by_label_and_field(api: Api, namespace: str) -> None:
    for name in ("one", "two"):
        api.apply(config_map(namespace, name))
    (by_label,) = api.list("ConfigMap", namespace=namespace, labels={"test": "one"})
    (by_field,) = api.list("ConfigMap", namespace=namespace, fields={"metadata.name": "two"})
    assert (by_label["metadata"]["name"], by_field["metadata"]["name"]) == ("one", "two")
    assert (by_label["kind"], by_label["apiVersion"]) == ("ConfigMap", "v1")


def test_lists_go_on_page_by_page(api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusters.api.PAGE", 2)
    for number in range(5):
        api.apply(config_map(namespace, f"page-{number}"))
    names = {body["metadata"]["name"] for body in api.list("ConfigMap", namespace=namespace)}
    assert {f"page-{number}" for number in range(5)} <= names


def test_a_watch_begins_where_a_list_ended(api: Api, namespace: str) -> None:
    __, version = api.list_with_version("ConfigMap", keep=str)
    api.apply(config_map(namespace, a="1"))
    lines = api.watch("ConfigMap", version=version, server_timeout_seconds=10, read_timeout_seconds=15)
    seen = next(line for line in lines if namespace in line)
    lines.close()
    assert '"ADDED"' in seen


# Kinds that are never listed, or that not every cluster has: a trial's nodes report no drivers.
REVIEWS = {"SelfSubjectAccessReview", "SelfSubjectReview", "SubjectAccessReview"}
ELSEWHERE = REVIEWS | {"CSINode"} | {kind.name for kind in KINDS.values() if kind.group == KUEUE}


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - ELSEWHERE))
def test_every_kind_is_where_the_table_says(api: Api, kind: str) -> None:
    assert isinstance(api.list(kind), list)


def test_the_version_is_told(api: Api) -> None:
    assert api.version().startswith("v1.")


def test_a_look_at_all_reads_page_by_page_and_of_secrets_no_value(api: Api, namespace: str) -> None:
    for number in range(3):
        body = config_map(namespace, f"app-{number}", a="hidden") | {
            "kind": "Secret",
            "data": {"a": "aGlkZGVu"},
        }
        api.apply(body)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("clusters.api.PAGE", 2)
        found = list(api.each("Secret", namespace=namespace, metadata_only=True))
    assert [body["metadata"]["name"] for body in found if "test" in body["metadata"].get("labels", {})] == [
        "app-0", "app-1", "app-2",
    ]  # fmt: skip
    assert {body["kind"] for body in found} == {"Secret"}
    assert "data" not in found[0]
    assert "aGlkZGVu" not in str(found)
