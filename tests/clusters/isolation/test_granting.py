"""Tests of who may write Secrets where: a RoleBinding in each tenant's namespace, and none where it is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from clusters import labels
from clusters.connections import connect
from clusters.errors import ClusterRefused
from clusters.isolation import granting
from clusters.models import Cluster, Installation
from clusters.permissions import SECRETS, is_granted
from devcluster.testing.kube import Kube
from tests.own_rights import OwnRights

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(kubeconfig: str, tmp_path: Path) -> Iterator[Cluster]:
    rights = OwnRights(kubeconfig, tmp_path)
    path = str(rights.kubeconfig)
    yield Cluster.objects.create(slug="own", name="Own", connection="kubeconfig", kubeconfig_path=path)
    rights.clear_away()


def test_an_admin_of_the_cluster_needs_no_binding(kubeconfig: str) -> None:
    cluster = Cluster(slug="lab", connection="kubeconfig", kubeconfig_path=kubeconfig)
    assert granting.accounts(cluster, connect(cluster)) == []


def test_secrets_are_written_in_tenants_namespaces_alone(cluster: Cluster, kubeconfig: str) -> None:
    """Those that an earlier version made get the binding, and one that somebody removed comes back."""
    admin, api, name = Kube(Path(kubeconfig)), connect(cluster), f"berth-{uuid4().hex[:8]}"
    own = {
        labels.MANAGED_BY: labels.MANAGER,
        labels.INSTANCE: str(Installation.current_id()),
        labels.TENANT: "demo",
    }
    admin.namespace(name, **own)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ws-1"}}

    def write(namespace: str) -> None:
        api.apply({**secret, "metadata": {"name": "ws-1", "namespace": namespace}})

    for _ in range(2):
        granting.refresh(cluster, api)
        granting.wait(name, api)
        write(name)
        assert all(is_granted(api, SECRETS, verb, name) for verb in SECRETS.verbs)
        with pytest.raises(ClusterRefused, match="forbidden"):
            write("default")
        admin.call(
            "DELETE", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings/berth-secrets"
        )
    [subject] = Cluster.objects.get().secret_accounts
    assert subject["kind"] == "ServiceAccount" and subject["name"] == subject["namespace"]
    admin.call("DELETE", f"/api/v1/namespaces/{name}")


def test_subjects_are_those_that_rbac_knows() -> None:
    assert granting.subject("system:serviceaccount:berth:berth-worker") == {
        "kind": "ServiceAccount",
        "namespace": "berth",
        "name": "berth-worker",
    }
    assert granting.subject("ops")["kind"] == "User"
