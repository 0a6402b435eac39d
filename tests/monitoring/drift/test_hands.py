"""Manual changes to a running workspace's objects on a real API: found and repaired while the pod runs on."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Conflict
from clusters.api import Api
from clusters.labels import instance_selector
from clusters.pods.ends import FINALIZER
from monitoring.drift import actions
from monitoring.models import Finding
from tests.cast import Cast
from tests.monitoring.drift.stage import finding, look, look_for_a_while, shown
from tests.shared.driving import drive, in_phase, launched, told
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db(transaction=True)]


def patch(api: Api, workspace: Workspace, kind: str, **operations: object) -> None:
    """Patch by JSON pointers, as a person outside of Berth."""
    body = [{"op": "add", "path": path, "value": value} for path, value in operations.items()]
    by_hand(api, kind, workspace.tenant.namespace, workspace.object_name, body)


def by_hand(api: Api, kind: str, namespace: str | None, name: str, body: list[dict[str, Any]]) -> None:
    """Patch as another manager."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("clusters.api.MANAGER", "kubectl-edit")
        assert api.json_patch(kind, namespace, name, body) is not None


def replaced_by_hand(api: Api, body: dict[str, Any], data: dict[str, str]) -> None:
    """Replace an immutable ConfigMap with one of other content, as another manager."""
    metadata = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    api.delete("ConfigMap", metadata["namespace"], metadata["name"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("clusters.api.MANAGER", "kubectl-edit")
        api.create({**body, "metadata": metadata, "data": data})


@pytest.mark.slow
def test_changed_and_missing_objects_are_recreated_while_the_pod_runs_on(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    name, namespace = workspace.object_name, house.demo.namespace
    assert look_for_a_while(house.cluster) == set()
    patch(
        api, workspace, "Service", **{"/spec/selector": {"app": "other"}, "/spec/externalIPs": ["192.0.2.7"]}
    )
    (files,) = api.list("ConfigMap", namespace=namespace, labels=instance_selector())
    replaced_by_hand(api, files, {**files["data"], "start.sh": "exit 1"})
    api.delete("Secret", namespace, name)
    api.delete("NetworkPolicy", namespace, "berth")
    enforce = "/metadata/labels/pod-security.kubernetes.io~1enforce"
    by_hand(api, "Namespace", None, namespace, [{"op": "add", "path": enforce, "value": "privileged"}])
    assert look(house.cluster) == set()  # not yet: somebody may be at work
    wrong = {
        ("changed", "Service", name), ("changed", "ConfigMap", files["metadata"]["name"]),
        ("missing", "Secret", name), ("missing", "NetworkPolicy", "berth"), ("changed", "Namespace", namespace),
    }  # fmt: skip
    assert look_for_a_while(house.cluster) == wrong
    changed = finding("Service").data["fields"]
    assert {(one["path"], one["by"]) for one in changed} >= {("spec.selector", "kubectl-edit")}
    (pod,) = api.list("Pod", namespace=namespace)
    for row in Finding.objects.open():
        assert actions.recreate(house.admin, row)
    assert shown() == set()
    drive(workspace, in_phase("ready"))
    assert look_for_a_while(house.cluster) == set()
    (same,) = api.list("Pod", namespace=namespace)
    assert same["metadata"]["uid"] == pod["metadata"]["uid"]
    service = api.get("Service", namespace, name)
    assert service is not None
    assert "externalIPs" not in service["spec"]
    assert api.list("ConfigMap", namespace=namespace, labels=instance_selector()) == []
    assert told(workspace).count("drift_recreated") == 2


@pytest.mark.slow
def test_an_accepted_change_is_a_finding_again_once_it_changes(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    patch(api, workspace, "Service", **{"/spec/externalIPs": ["192.0.2.7"]})
    look_for_a_while(house.cluster)
    seen = finding("Service")
    Finding.objects.update(digest="of another")  # as if a look found another change meanwhile
    with pytest.raises(Conflict):
        actions.accept(house.admin, seen)
    Finding.objects.update(digest=seen.digest)
    assert actions.accept(house.admin, seen)
    assert look(house.cluster) == set()
    patch(api, workspace, "Service", **{"/spec/externalIPs": ["192.0.2.8"]})
    assert look(house.cluster) == {("changed", "Service", workspace.object_name)}
    assert told(workspace)[-1] == "drift_accepted"


@pytest.mark.slow
def test_a_pod_gets_its_finalizer_back_and_for_anything_else_the_workspace_restarts(
    house: Cast, api: Api
) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    namespace, name = house.demo.namespace, workspace.object_name
    api.merge_patch("Pod", namespace, name, {"metadata": {"finalizers": None}})
    assert look_for_a_while(house.cluster) == {("changed", "Pod", name)}
    assert actions.recreate(house.admin, finding("Pod"))
    (pod,) = api.list("Pod", namespace=namespace)
    assert pod["metadata"]["finalizers"] == [FINALIZER]
    assert look_for_a_while(house.cluster) == set()
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "berth.local/jupyter:1-other"}]
    by_hand(api, "Pod", namespace, name, image)
    assert look_for_a_while(house.cluster) == {("changed", "Pod", name)}
    first_run = workspace.run
    assert actions.recreate(house.admin, finding("Pod"))
    drive(workspace, lambda row: row.phase == "ready" and row.run != first_run)
    assert told(workspace).count("restart_by_admin") == 1


@pytest.mark.slow
def test_an_object_that_lost_our_label_gets_it_back(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    label = [{"op": "remove", "path": "/metadata/labels/berth.dev~1workspace"}]
    by_hand(api, "Secret", house.demo.namespace, workspace.object_name, label)
    assert look_for_a_while(house.cluster) == {("changed", "Secret", workspace.object_name)}
    assert actions.recreate(house.admin, finding("Secret"))
    assert look_for_a_while(house.cluster) == set()
