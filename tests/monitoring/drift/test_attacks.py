"""Attacks by writers of labels and objects, or by a cluster that lies. They must not reach another's data, show a
misleading sentence to an admin, or end all looks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from accounts.errors import Conflict
from clusters.errors import ClusterRefused
from clusters.models import Cluster
from monitoring.drift import actions, looks
from monitoring.drift.compare import drift, thing_of
from monitoring.drift.ownership import differences, removals
from monitoring.drift.survey import survey
from monitoring.models import Finding, Look, What
from tests.admin_forms import confirm, preview
from tests.cast import NETWORKS, Cast
from tests.monitoring.drift.findings import PAGE, finding
from tests.monitoring.drift.objects import (
    NAMESPACE,
    SERVICE,
    Listing,
    body,
    entry,
    fences,
    looked,
    of,
    of_a_run,
)
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase, Workspace
from workspaces.runs import admin_repair

pytestmark = pytest.mark.django_db


@pytest.fixture
def kept(cast: Cast) -> Workspace:
    """A deleted workspace whose home was kept."""
    row = make_workspace(cast, cast.bob, Phase.DELETED, desired=Desired.DELETED, deleted_at=timezone.now())
    row.volumes = {f"ws-{row.pk}-home": "pv-1"}
    row.save()
    return row


def claim(row: Workspace, namespace: str = NAMESPACE, volume: str = "pv-1") -> dict[str, Any]:
    made = body("PersistentVolumeClaim", f"ws-{row.pk}-home", str(row.pk), namespace=namespace, uid="uid")
    return made | {"spec": {"volumeName": volume}, "status": {"phase": "Bound"}}


# --- Labels


@pytest.mark.parametrize("label", ["no-uuid", "00000000-0000-4000-8000-00000000000b"])
def test_a_label_cannot_make_a_tenants_objects_unwanted(label: str) -> None:
    labelled = fences()
    for labelled_body in labelled:
        labelled_body["metadata"]["labels"] = {"berth.dev/workspace": label}
    assert list(drift({}, {NAMESPACE: "demo"}, map(thing_of, labelled))) == []
    set_by = entry("kubectl-label", {"f:metadata": {"f:labels": {"f:berth.dev/workspace": {}}}})
    labelled[0]["metadata"]["managedFields"] = [set_by]
    found = drift({}, {NAMESPACE: "demo"}, map(thing_of, labelled))
    (one,) = [each for each in found if each.key.kind == "Namespace"]
    assert (one.what, one.differences[-1].by) == (What.CHANGED, "")
    assert "berth.dev/workspace" in one.differences[0].path


def test_a_pvc_in_another_namespace_is_no_kept_volume(cast: Cast, kept: Workspace) -> None:
    assert looked(cast, claim(kept)) == [(What.KEPT, "PersistentVolumeClaim")]
    assert looked(cast, claim(kept, "berth-second")) == [(What.UNWANTED, "PersistentVolumeClaim")]


def test_a_cluster_under_two_names_shows_no_workspace_as_unwanted(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob)
    again = Cluster.objects.create(
        slug="again", name="Again", connection=Cluster.Connection.KUBECONFIG, **NETWORKS
    )
    api: Any = Listing(*of_a_run(row.pk), claim(row), body("Secret", "copy", str(row.pk)))
    found = survey(again, api).found
    assert [(one.what, one.key.name) for one in found] == [(What.UNWANTED, "copy")]


# --- Two admins at once


class Holding:
    """Cluster with these objects. `meanwhile` runs before a volume is set to be deleted."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.refuses = False
        self.policies: list[str] = []
        self.deleted: list[str] = []

    def each(self, kind: str, *, fields: dict[str, str], **_: Any) -> Any:
        names = fields.values()
        yield from (one for one in self.bodies if one["kind"] == kind and one["metadata"]["name"] in names)

    def get(self, kind: str, namespace: str, name: str) -> Any:
        self.meanwhile()
        return next(self.each(kind, fields={"metadata.name": name}))

    def merge_patch(self, kind: str, namespace: None, name: str, patch: dict[str, Any]) -> None:
        self.policies.append(patch["spec"]["persistentVolumeReclaimPolicy"])

    def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> bool:
        if self.refuses:
            raise ClusterRefused(403, "Forbidden", "no right")
        self.deleted.append(name)
        return True


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Holding:
    api = Holding()
    monkeypatch.setattr(actions, "api_for", lambda cluster: api)
    return api


@pytest.fixture
def seen(cast: Cast, kept: Workspace, api: Holding) -> Finding:
    """The finding about the kept home, which is in the cluster."""
    api.bodies = [claim(kept)]
    fields = {"name": f"ws-{kept.pk}-home", "workspace": kept, "workspace_uuid": kept.pk}
    return finding(cast, "kept", "PersistentVolumeClaim", **fields)


def test_data_is_kept_if_another_admin_restores_the_workspace_meanwhile(
    cast: Cast, kept: Workspace, api: Holding, seen: Finding
) -> None:
    api.meanwhile = lambda: admin_repair.restore_deleted(cast.admin, kept)
    with pytest.raises(Conflict):
        actions.delete(cast.admin, seen, with_data=True)
    kept.refresh_from_db()
    assert (api.deleted, api.policies, kept.deleted_at, len(kept.volumes)) == ([], [], None, 1)


def test_a_workspace_whose_data_is_deleted_cannot_be_restored_unless_the_cluster_refused(
    cast: Cast, kept: Workspace, api: Holding, seen: Finding
) -> None:
    api.refuses = True
    with pytest.raises(Conflict):
        actions.delete(cast.admin, seen, with_data=True)
    kept.refresh_from_db()
    assert (api.policies, len(kept.volumes)) == (["Delete", "Retain"], 1)
    api.refuses = False
    assert actions.delete(cast.admin, seen, with_data=True)
    with pytest.raises(Conflict):
        admin_repair.restore_deleted(cast.admin, kept)


def test_a_pvc_created_again_by_hand_does_not_delete_the_kept_volume(
    cast: Cast, kept: Workspace, api: Holding, seen: Finding
) -> None:
    api.bodies = [claim(kept, volume="pv-other")]
    with pytest.raises(Conflict):
        actions.delete(cast.admin, seen, with_data=True)
    kept.refresh_from_db()
    assert kept.volumes == {f"ws-{kept.pk}-home": "pv-1"}


def test_a_restored_workspace_gets_a_free_name_however_many_are_taken(cast: Cast, kept: Workspace) -> None:
    Workspace.objects.filter(pk=kept.pk).update(name="n" * 63)
    taken = ["n" * 63, *(f"{'n' * 58}-{number}" for number in range(2, 120))]
    one = make_workspace(cast, cast.bob, Phase.STOPPED, name="other")
    values = Workspace.objects.values().get(pk=one.pk)
    del values["id"], values["name"]
    Workspace.objects.bulk_create(Workspace(name=name, **values) for name in taken)
    assert admin_repair.restore_deleted(cast.admin, kept)
    kept.refresh_from_db()
    assert kept.name == f"{'n' * 58}-120"


def test_a_namespace_object_is_recreated_only_for_a_tenant_of_this_installation(
    cast: Cast, api: Holding
) -> None:
    assert api.bodies == []  # no objects of ours
    for slug in ("demo", "gone"):
        lost = finding(
            cast, "missing", "LimitRange", namespace=f"berth-{slug}", name="berth", uid="", tenant_slug=slug
        )
        with pytest.raises(Conflict):
            actions.recreate(cast.admin, lost)


# --- Content of objects


def test_values_of_an_object_are_shown_bounded_and_printable() -> None:
    name: Any = {"f:spec": {"f:externalName": {}}}
    evil = "a\0b\u202e" + "x" * 9000
    service = of("Service", entry("berth", SERVICE), entry("kube\x1b[31m", name), spec={"externalName": evil})
    (one,) = differences(service)
    assert (one.by, one.value) == ("kube\ufffd[31m", "a\ufffdb\ufffd" + "x" * 116)


@pytest.mark.parametrize("field", ['k:{"name":"a"}', "i:-1", "i:7", 'v:"b"', "f:c"])
def test_owned_fields_that_do_not_exist_cause_no_error(field: str) -> None:
    forged = entry("forger", {"f:spec": {"f:externalIPs": {field: {}}, "f:ports": {}}})
    (first, _ports, *_rest) = differences(of("Service", forged, spec={"externalIPs": ["192.0.2.7"]}))
    assert first.value is None


def test_owned_fields_deeper_than_any_object_are_cut() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"f:a": deep}
    assert differences(of("Service", entry("forger", {"f:spec": deep})))[0].path.startswith("spec.a.a")


def test_a_removal_tests_first_that_the_value_is_the_one_that_was_seen() -> None:
    added = entry("kubectl", {"f:spec": {"f:ports": {'k:{"port":9}': {".": {}, "f:port": {}}}}})
    service = of("Service", added, spec={"ports": [{"port": 8}, {"port": 9}]})
    wanted = {"spec": {"ports": [{"port": 8}]}}
    assert removals(wanted, differences(service), service) == [
        {"op": "test", "path": "/spec/ports/1", "value": {"port": 9}},
        {"op": "remove", "path": "/spec/ports/1"},
    ]


def test_a_look_stores_odd_and_huge_changes_so_that_pages_can_show_them(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {f"f:{number}": {} for number in range(400)}
    owned: Any = {"f:spec": {"f:template": {"f:image": {}, **fields}}}
    forged = entry("forger", owned) | {"time": "0000-01-01T00:00:00Z"}
    bodies = of_a_run(make_workspace(cast, cast.bob).pk)
    bodies[0]["metadata"]["managedFields"] = [entry("berth", SERVICE), forged]
    bodies[0]["spec"] = {"template": {"image": "a\0"}}
    monkeypatch.setattr(looks, "api_for", lambda cluster: Listing(*bodies, *fences()))
    looks.look(cast.cluster.pk)
    row = Finding.objects.get(what="changed")
    assert len(row.data["fields"]) == 51
    Finding.objects.update(confirmed_at=timezone.now())
    client = browser(cast.admin)
    assert len(client.get(PAGE).content) < 40_000
    for action in ("accept", "recreate"):
        assert "0000-01-01" in preview(client, PAGE, action, row).content.decode()


def test_a_look_that_fails_says_so_and_resolves_nothing(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    left = finding(cast, "unwanted")
    queued = timezone.now() - timedelta(minutes=1)
    Look.objects.create(cluster=cast.cluster, queued_at=queued)
    odd = body("Secret", "odd", str(UUID(int=1)))
    del odd["metadata"]["uid"]
    monkeypatch.setattr(looks, "api_for", lambda cluster: Listing(odd))
    looks.look(cast.cluster.pk)
    last = Look.objects.get(cluster=cast.cluster)
    assert (last.error, last.queued_at) == ("KeyError; the worker's log tells more.", None)
    assert Finding.objects.open().get() == left


def test_a_look_that_takes_too_long_ends_with_an_error(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    left = finding(cast, "unwanted")
    monkeypatch.setattr("monitoring.drift.survey.MOST_SECONDS", -1.0)
    monkeypatch.setattr(looks, "api_for", lambda cluster: Listing(*fences()))
    looks.enqueue_look(cast.cluster.pk)
    looks.look(cast.cluster.pk)
    assert "were not read within" in Look.objects.get(cluster=cast.cluster).error
    assert Finding.objects.open().get() == left


def test_a_change_between_preview_and_confirmation_is_asked_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = {"path": "data.start.sh", "by": "kubectl", "at": "2026-01-01T00:00:10Z", "value": None}
    row = finding(cast, "changed", "ConfigMap", data={"fields": [field]}, digest="before")
    client = browser(cast.admin)
    page = preview(client, PAGE, "accept", row)
    Finding.objects.update(digest="after", data={"fields": [field | {"at": "2026-01-01T00:00:50Z"}]})
    monkeypatch.setattr(actions, "api_for", lambda cluster: pytest.fail("done at once"))
    again = confirm(client, PAGE, page).content.decode()
    assert "Accept what was changed" in again
    assert Finding.objects.open().count() == 1
