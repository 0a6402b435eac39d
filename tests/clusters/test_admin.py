"""Tests of the connection test: it shows what is missing, in words and as the line to add, and no secret."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from accounts.models import AuditEntry, Tenant, User
from clusters import doctor
from clusters.api import Api
from clusters.doctor import keeping
from clusters.errors import ClusterUnavailable
from clusters.models import Cluster
from clusters.storage.classes import DEFAULT_CLASS, is_default
from devcluster.serving import tls
from quotas.models import Pool
from tests.admin_forms import text_of
from tests.cast import NETWORKS
from tests.clusters.stub import Stub
from tests.own_rights import OwnRights

pytestmark = pytest.mark.django_db

SECRET = "a-token-that-nobody-sees"


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("admin", is_staff=True))
    return client


@pytest.fixture(scope="module")
def rights(kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRights]:
    own = OwnRights(kubeconfig, tmp_path_factory.mktemp("own"))
    yield own
    own.clear_away()


def cluster_at(path: Path | str, **fields: Any) -> Cluster:
    fields = {"slug": "lab", "name": "Lab", "connection": "kubeconfig", **NETWORKS} | fields
    return Cluster.objects.create(kubeconfig_path=str(path), **fields)


def result_of(client: Client, cluster: Cluster) -> str:
    answer = client.post(f"/admin/clusters/cluster/{cluster.pk}/test/")
    assert answer.status_code == 200
    return text_of(answer)


def changed(kubeconfig: str, folder: Path, **parts: Any) -> Path:
    """Write a copy of the kubeconfig with other values of its cluster or user."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    config["clusters"][0]["cluster"].update(parts.get("cluster", {}))
    if "user" in parts:
        config["users"][0]["user"] = parts["user"]
    path = folder / "changed.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_all_that_holds_is_told_check_by_check(admin: Client, rights: OwnRights) -> None:
    page = result_of(admin, cluster_at(rights.kubeconfig))
    for check in doctor.Check:
        assert f"<h3>{check.label}</h3>" in page
    assert "permissions that it needs." in page
    assert AuditEntry.objects.get(action="cluster.test").data == {"name": "Lab", "failures": 0}


def test_a_portal_without_a_worker_says_so(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_of: object) -> list[doctor.Finding]:
        raise ClusterUnavailable("No worker answers.")

    monkeypatch.setattr(keeping, "examined", nobody)
    cluster = cluster_at("/absent", doctor_failures={"nodes": 2})
    page = admin.get(f"/admin/clusters/cluster/{cluster.pk}/doctor/")
    assert [page.status_code, "No worker answers." in text_of(page)] == [200, True]
    cluster.refresh_from_db()
    assert cluster.doctor_failures == {"nodes": 2}
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)
    assert "No worker answers." in out.getvalue()


def test_the_doctors_page_finds_planted_faults(admin: Client, api: Api, kubeconfig: str) -> None:
    """Find two planted faults: a storage class that is no longer the default, and no agent on any node."""
    cluster = cluster_at(kubeconfig)
    address = f"/admin/clusters/cluster/{cluster.pk}/doctor/"
    assert f'href="{address}"' in text_of(admin.get(f"/admin/clusters/cluster/{cluster.pk}/change/"))
    assert "1 thing is missing" not in text_of(admin.get(address))
    [default] = [body["metadata"]["name"] for body in api.list("StorageClass") if is_default(body)]
    mark = {"metadata": {"annotations": {DEFAULT_CLASS: None}}}
    api.merge_patch("StorageClass", None, default, mark)
    try:
        page = text_of(admin.get(address))
    finally:
        mark["metadata"]["annotations"][DEFAULT_CLASS] = "true"  # type: ignore[assignment]
        api.merge_patch("StorageClass", None, default, mark)
    assert "There is no storage class for homes" in page and "2 things are missing." in page
    assert not AuditEntry.objects.filter(action="cluster.test").exists()  # doctor's page records no test
    stranger = Client()
    assert stranger.get(address).status_code == 302
    assert admin.post(address).status_code == 405


def test_a_role_bound_in_one_namespace_is_recognised(
    admin: Client, rights: OwnRights, kubeconfig: str
) -> None:
    tenant = Tenant.objects.create(slug="own-rights", name="Own rights")
    kube = rights._admin
    space = kube.namespace(tenant.namespace)
    subject = {"kind": "ServiceAccount", "name": rights.name, "namespace": rights.name}
    binding = {
        "metadata": {"name": "berth"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin-of-pods"},
        "subjects": [subject],
    }
    role = {
        "metadata": {"name": "admin-of-pods"},
        "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    kube.create(f"{rbac}/clusterroles", role)
    kube.create(f"{rbac}/namespaces/{tenant.namespace}/rolebindings", binding)
    rights.change([rule for rule in rights.rules if rule["resources"] != ["pods/log"]])
    try:
        page = result_of(admin, cluster_at(rights.kubeconfig))
    finally:
        rights.change(rights.rules)
        kube.call("DELETE", space)
        kube.call("DELETE", f"{rbac}/clusterroles/admin-of-pods")
    assert "Berth is not allowed to get pods/log." in page and "1 thing is missing." in page
    assert "- apiGroups: [&quot;&quot;]\n  resources: [pods/log]\n  verbs: [get]" in page
    assert "It has this permission in berth-own-rights, but not in every namespace" in page


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"user": {"token": SECRET}}, "does not accept Berth&#x27;s credentials"),
        ({"cluster": {"server": "https://127.0.0.1:1"}}, "Nothing listens at the cluster&#x27;s address."),
        ({"cluster": {"server": "https://nowhere.invalid:6443"}}, "cannot resolve the name"),
        ({"user": {"exec": {"command": SECRET}}}, "a program that would run on this server"),
    ],
    ids=["wrong token", "nothing there", "no such name", "a program"],
)
def test_connection_faults_are_explained_without_secrets(
    admin: Client, kubeconfig: str, tmp_path: Path, parts: dict[str, Any], said: str
) -> None:
    page = result_of(admin, cluster_at(changed(kubeconfig, tmp_path, **parts)))
    assert said in page
    assert SECRET not in page


def test_a_certificate_of_another_authority_is_told(admin: Client, kubeconfig: str, tmp_path: Path) -> None:
    _server, certificate = tls.context(tmp_path)
    authority = {"certificate-authority-data": base64.b64encode(certificate.encode()).decode()}
    page = result_of(admin, cluster_at(changed(kubeconfig, tmp_path, cluster=authority)))
    assert "not signed by the authority in the kubeconfig" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist."),
        ("", "cannot be understood"),
        (f"users: [{{name: x, user: {{token: {SECRET}}}}}]", "no complete context"),
        (f"{SECRET}: [", "cannot be understood"),
    ],
    ids=["absent", "empty", "incomplete", "no YAML"],
)
def test_faults_of_the_file_are_explained_without_quotes(
    admin: Client, tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    page = result_of(admin, cluster_at(path))
    assert said in page
    assert SECRET not in page


def test_a_test_of_a_silent_cluster_ends(
    admin: Client, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.examination, "WITHIN_SECONDS", 0.5)
    stub.answers = [lambda request: stub.wait(60)]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config_of(stub.api.address)))
    began = time.monotonic()
    page = result_of(admin, cluster_at(path))
    assert time.monotonic() - began < 20
    assert "does not answer in time" in page


def config_of(server: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": SECRET}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_saving_may_test_at_once(admin: Client, tmp_path: Path) -> None:
    cluster = cluster_at(tmp_path / "absent")
    page = admin.get(f"/admin/clusters/cluster/{cluster.pk}/change/")
    initial = page.context["adminform"].form.initial
    form = {name: value for name, value in initial.items() if isinstance(value, str | int)}
    answer = admin.post(page.request["PATH_INFO"], form | {"name": "Renamed", "_test": "yes"})
    assert "does not exist." in text_of(answer)
    assert Cluster.objects.get().name == "Renamed"


def test_a_test_is_no_get_and_not_for_others(admin: Client, tmp_path: Path) -> None:
    path = f"/admin/clusters/cluster/{cluster_at(tmp_path).pk}/test/"
    assert admin.get(path).status_code == 405
    stranger = Client()
    stranger.force_login(User.objects.create_user("alice"))
    assert stranger.post(path).status_code == 302
    assert not AuditEntry.objects.exists()


def test_a_cluster_with_pools_is_kept(admin: Client, tmp_path: Path) -> None:
    cluster = cluster_at(tmp_path)
    pool = Pool.objects.create(slug="a100", name="A100", cluster=cluster)
    path = f"/admin/clusters/cluster/{cluster.pk}/delete/"
    assert "It has pools: A100. Delete those first." in text_of(admin.get(path))
    admin.post(path, {"post": "yes"})
    assert Cluster.objects.exists()
    pool.delete()
    admin.post(path, {"post": "yes"})
    assert not Cluster.objects.exists()
