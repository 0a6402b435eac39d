"""Unwanted objects on a real API: found, deleted only by an admin, and their data only on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from accounts.errors import Conflict, NotAllowed
from accounts.models import AuditEntry
from clusters.api import Api
from clusters.isolation import granting
from devcluster.testing.waiting import until
from monitoring.drift import actions
from monitoring.models import Finding
from storage.models import Volume
from tests.cast import Cast
from tests.monitoring.drift.stage import claim_body, finding, look, look_for_a_while, planted, shown
from tests.shared.driving import ENOUGH_SECONDS, drive, in_phase, launched
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def namespace(house: Cast, api: Api) -> str:
    """Create the tenant's namespace as if by hand: with our label and right, but without the fences."""
    api.apply(bare_namespace(house.demo.namespace))
    api.apply(granting.role_binding(house.cluster, house.demo.namespace, {}))
    return house.demo.namespace


def bare_namespace(name: str) -> dict[str, Any]:
    body = planted("Namespace", "", name)
    del body["metadata"]["labels"]["berth.dev/workspace"]
    return body


def unwanted(house: Cast) -> set[tuple[str, str]]:
    """Return unwanted findings, without what the bare namespace lacks."""
    return {(kind, name) for what, kind, name in look_for_a_while(house.cluster) if what == "unwanted"}


def volume_of(api: Api, namespace: str, claim: str) -> str:
    found = api.get("PersistentVolumeClaim", namespace, claim)
    assert found is not None
    return str(found["spec"]["volumeName"])


def policy(api: Api, volume: str) -> str:
    found = api.get("PersistentVolume", None, volume)
    assert found is not None
    return str(found["spec"]["persistentVolumeReclaimPolicy"])


def test_unwanted_objects_are_deleted_only_by_an_admin(house: Cast, api: Api, namespace: str) -> None:
    api.apply(planted("Secret", namespace, "left", data={"a": "aGlkZGVu"}))
    api.apply(planted("ConfigMap", namespace, "old", workspace="no-uuid"))
    assert unwanted(house) == {("Secret", "left"), ("ConfigMap", "old")}
    with pytest.raises(NotAllowed):
        actions.delete(house.alice, finding("Secret"))
    assert actions.delete(house.admin, finding("Secret"))
    assert api.get("Secret", namespace, "left") is None
    assert unwanted(house) == {("ConfigMap", "old")}
    entry = AuditEntry.objects.get(action="drift.delete")
    assert entry.data["name"] == f"Secret {namespace}/left"
    assert "hidden" not in str(entry.data) and "aGlkZGVu" not in str(entry.data)


def test_an_object_that_was_replaced_is_left_alone(house: Cast, api: Api, namespace: str) -> None:
    api.apply(planted("Secret", namespace, "left"))
    assert unwanted(house) == {("Secret", "left")}
    seen = finding("Secret")
    api.delete("Secret", namespace, "left")
    api.apply(planted("Secret", namespace, "left"))
    with pytest.raises(Conflict):
        actions.delete(house.admin, seen)
    assert api.get("Secret", namespace, "left") is not None
    look(house.cluster)
    seen.refresh_from_db()
    assert seen.resolved_at is not None


def test_two_installations_on_one_cluster_see_nothing_of_each_other(
    house: Cast, api: Api, namespace: str
) -> None:
    other = str(uuid4())
    for kind in ("Secret", "ConfigMap"):
        api.apply(planted(kind, namespace, "theirs", instance=other))
    api.apply(claim_body(namespace, "theirs", instance=other))
    api.apply(planted("Namespace", "", f"berth-{other[:8]}", instance=other))
    try:
        assert unwanted(house) == set()
        assert not Finding.objects.filter(name="theirs").exists()
        seen = Finding(
            cluster=house.cluster, what="unwanted", kind="Secret", namespace=namespace, name="theirs",
            uid=str((api.get("Secret", namespace, "theirs") or {})["metadata"]["uid"]),
        )  # fmt: skip
        with pytest.raises(Conflict):
            actions.delete(house.admin, seen)
        assert api.get("Secret", namespace, "theirs") is not None
    finally:
        api.delete("Namespace", None, f"berth-{other[:8]}")


def test_a_namespace_without_a_tenant_is_found_but_not_deleted(house: Cast, api: Api) -> None:
    name = f"berth-gone-{uuid4().hex[:6]}"
    api.apply(bare_namespace(name))
    try:
        assert unwanted(house) == {("Namespace", name)}
        with pytest.raises(Conflict, match=f"kubectl delete namespace {name}"):
            actions.delete(house.admin, finding("Namespace"))
    finally:
        api.delete("Namespace", None, name)


@pytest.mark.slow
def test_the_finalizer_of_an_unowned_pod_is_removed_after_its_end(
    house: Cast, api: Api, namespace: str
) -> None:
    workspace = str(uuid4())
    limits = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "workspace", "image": "berth.local/jupyter:1", "resources": {"limits": limits}}
    pod = planted("Pod", namespace, "nobodys", workspace=workspace, spec={"containers": [container]})
    pod["metadata"]["finalizers"] = ["berth.dev/end-seen"]
    api.apply(pod)
    assert unwanted(house) == {("Pod", "nobodys")}
    assert actions.delete(house.admin, finding("Pod"))
    drive_looks(house, lambda: api.get("Pod", namespace, "nobodys") is None)


def drive_looks(house: Cast, done: Callable[[], bool]) -> None:
    def is_done() -> bool:
        look(house.cluster)
        return done()

    until(is_done, ENOUGH_SECONDS)


@pytest.fixture
def forgotten(house: Cast, api: Api) -> str:
    """Name of the PVC of a home whose row is gone, as after a restored backup of the database."""
    workspace = drive(launched(house), in_phase("ready"))
    lifecycle.delete(house.alice, workspace)
    drive(workspace, lambda row: row.deleted_at is not None)
    home = Volume.objects.get()
    assert look_for_a_while(house.cluster) == set()
    name = home.object_name
    home.delete()
    assert unwanted(house) == {("PersistentVolumeClaim", name)}
    return name


@pytest.mark.slow
def test_a_pvc_is_deleted_and_its_data_stays(house: Cast, api: Api, forgotten: str) -> None:
    volume = volume_of(api, house.demo.namespace, forgotten)
    assert actions.delete(house.admin, finding("PersistentVolumeClaim"))
    drive_looks(house, lambda: api.get("PersistentVolumeClaim", house.demo.namespace, forgotten) is None)
    assert policy(api, volume) == "Retain"
    assert shown() == set()


@pytest.mark.slow
def test_data_is_deleted_only_by_the_action_that_says_so(house: Cast, api: Api, forgotten: str) -> None:
    volume = volume_of(api, house.demo.namespace, forgotten)
    assert actions.delete(house.admin, finding("PersistentVolumeClaim"), with_data=True)
    drive_looks(house, lambda: api.get("PersistentVolume", None, volume) is None)


@pytest.mark.slow
def test_deleting_a_pvc_that_only_names_anothers_volume_keeps_the_volume(
    house: Cast, api: Api, forgotten: str
) -> None:
    volume = volume_of(api, house.demo.namespace, forgotten)
    thief = claim_body(house.demo.namespace, "thief")
    thief["spec"]["volumeName"] = volume
    api.apply(thief)
    look_for_a_while(house.cluster)
    assert actions.delete(house.admin, finding("PersistentVolumeClaim", "thief"), with_data=True)
    assert policy(api, volume) == "Retain"
