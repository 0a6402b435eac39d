"""Attacks by writers of labels and objects, or by a cluster that lies. They must not reach another's data, show a
misleading sentence to an admin, or end all looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from accounts.errors import Conflict
from clusters.errors import ClusterRefused
from clusters.models import Cluster
from monitoring.drift import actions
from monitoring.drift.compare import drift, thing_of
from monitoring.drift.survey import survey
from monitoring.models import What
from storage.models import Volume
from tests.cast import NETWORKS, Cast
from tests.monitoring.drift.findings import finding
from tests.monitoring.drift.objects import (
    NAMESPACE,
    Listing,
    body,
    entry,
    fences,
    looked,
    of_a_run,
)
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def deleted(cast: Cast) -> Workspace:
    """A deleted workspace whose home an earlier version left in the cluster."""
    return make_workspace(cast, cast.bob, Phase.DELETED, desired=Desired.DELETED, deleted_at=timezone.now())


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


def test_a_pvc_that_a_volume_has_is_no_finding_wherever_its_workspace_is(
    cast: Cast, deleted: Workspace
) -> None:
    assert looked(cast, claim(deleted)) == [(What.UNWANTED, "PersistentVolumeClaim")]
    Volume.objects.create(
        tenant=cast.demo,
        owner=cast.bob.user,
        cluster=cast.cluster,
        name="home",
        kind="home",
        requested_mib=64,
        claim_name=f"ws-{deleted.pk}-home",
    )
    assert looked(cast, claim(deleted)) == []
    assert looked(cast, claim(deleted, "berth-second")) == [(What.UNWANTED, "PersistentVolumeClaim")]


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


def test_data_is_kept_if_the_cluster_refuses_the_deletion(
    cast: Cast, deleted: Workspace, api: Holding
) -> None:
    api.bodies = [claim(deleted)]
    fields = {"name": f"ws-{deleted.pk}-home", "workspace": deleted, "workspace_uuid": deleted.pk}
    seen = finding(cast, "unwanted", "PersistentVolumeClaim", **fields)
    api.refuses = True
    with pytest.raises(Conflict):
        actions.delete(cast.admin, seen, with_data=True)
    assert (api.policies, api.deleted) == (["Delete", "Retain"], [])
    api.refuses = False
    assert actions.delete(cast.admin, seen, with_data=True)
    assert api.deleted == [f"ws-{deleted.pk}-home"]
