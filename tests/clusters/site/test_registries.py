"""Sign-ons to registries: entered as lines, kept encrypted, and one Secret in each namespace of Berth."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import AuditEntry, Tenant, User
from clusters import labels
from clusters.connections import connect
from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.models import Cluster, Installation
from clusters.site import registries
from clusters.site.registries import NAME, SignOn
from clusters.watch.registries import Registries
from devcluster.testing.kube import Kube
from monitoring.isolation import manifests as of_proofs
from monitoring.validation import manifests as of_tests
from tests.admin_forms import text_of
from tests.own_rights import OwnRights, bind
from tests.shared.played_api import PlayedApi

ROBOT = SignOn("registry.example:5000/team", "robot$berth", "s3cret with spaces")


def auths(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.b64decode(body["data"][".dockerconfigjson"]))["auths"]
    return found


def cluster_with(*sign_ons: SignOn, **values: Any) -> Cluster:
    return Cluster(slug="lab", registries=registries.sealed(sign_ons), **values)


def test_lines_come_back_as_they_were_entered_but_for_the_password() -> None:
    found = registries.parsed(f"{ROBOT.host} {ROBOT.username} {ROBOT.password}\r\n\r\n", [])
    assert found == [ROBOT]
    assert registries.parsed(registries.lines(found), found) == [ROBOT]
    cluster = cluster_with(*found)
    assert registries.sign_ons(cluster) == [ROBOT]
    assert ROBOT.password not in cluster.registries + registries.lines(found) + repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "registry.example robot", "https://registry.example robot hush", "registry.example ro:bot hush",
        "registry.example robot kept", "registry.example a hush\nregistry.example b hush", "a b hush",
    ],
)  # fmt: skip
def test_what_is_no_sign_on_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        registries.parsed(text, [ROBOT])
    assert "hush" not in str(refused.value)


def test_docker_hub_is_known_by_both_of_its_names() -> None:
    body = registries.secret(cluster_with(SignOn("docker.io", "me", "pw"), ROBOT), "berth-demo", {})
    assert body is not None and body["type"] == "kubernetes.io/dockerconfigjson"
    found = auths(body)
    assert set(found) == {"docker.io", "https://index.docker.io/v1/", ROBOT.host}
    assert base64.b64decode(found["docker.io"]["auth"]) == b"me:pw"


def test_pods_name_the_secret_only_if_there_is_one() -> None:
    assert registries.pull_secrets(cluster_with()) == {}
    cluster = cluster_with(ROBOT, image_pull_secrets=["mirror"])
    names = [one["name"] for one in registries.pull_secrets(cluster, ["ngc", "mirror"])["imagePullSecrets"]]
    assert names == [NAME, "mirror", "ngc"]


# --- in a cluster


@pytest.fixture
def cluster(db: None, kubeconfig: str, tmp_path: Path) -> Iterator[Cluster]:
    rights = OwnRights(kubeconfig, tmp_path)
    path = str(rights.kubeconfig)
    fields = {"slug": "own", "name": "Own", "connection": "kubeconfig", "kubeconfig_path": path}
    cluster = Cluster.objects.create(registries=registries.sealed([ROBOT]), **fields)
    bind(cluster)
    cluster.save()
    yield cluster
    rights.clear_away()


def test_the_watcher_makes_changes_restores_and_deletes_it(cluster: Cluster, kubeconfig: str) -> None:
    """Where nobody bound the right to Secrets yet, too; and nowhere else, whatever labels somebody sets there."""
    admin, api = Kube(Path(kubeconfig)), connect(cluster)
    name = Tenant.objects.create(slug=uuid4().hex[:8], name="Lab").namespace
    own = {labels.MANAGED_BY: labels.MANAGER, labels.INSTANCE: str(Installation.current_id())}
    path = f"/api/v1/namespaces/{name}/secrets"
    admin.namespace(name, **own)
    admin.namespace(f"{name}-not", **own)
    mirror = Mirror(lambda: api)
    mirror.replace("Namespace", api.list("Namespace"), "1")
    keeper = Registries(cluster, mirror)

    def look(now: bool = False) -> list[Any]:
        keeper._done_at -= 3600 if now else 0
        keeper.step()
        return [auths(body) for body in admin.get(path)["items"]]

    entry = {"username": ROBOT.username, "password": ROBOT.password}
    [made] = look()
    assert made[ROBOT.host].items() >= entry.items()
    assert admin.get(f"/api/v1/namespaces/{name}-not/secrets")["items"] == []
    admin.call("DELETE", f"{path}/{NAME}")
    assert look() == []
    assert look(now=True) == [made]
    Cluster.objects.update(registries=registries.sealed([SignOn(ROBOT.host, "robot", "new")]))
    assert look()[0][ROBOT.host]["password"] == "new"
    Cluster.objects.update(registries="")
    assert look() == []
    for namespace in (name, f"{name}-not"):
        admin.call("DELETE", f"/api/v1/namespaces/{namespace}")


class Refusing(PlayedApi):
    """Cluster that lets nobody touch Secrets in some namespaces."""

    def __init__(self, refused: dict[str, int]) -> None:
        super().__init__()
        self.refused = refused

    def each(self, kind: str, *, namespace: str, metadata_only: bool, **selectors: Any) -> list[Any]:
        if namespace in self.refused:
            raise ClusterRefused(self.refused[namespace], "Refused", "no")
        return self.list(kind, namespace=namespace)

    def secrets(self) -> set[str]:
        return {body["metadata"]["namespace"] for body in self.of("Secret")}


@pytest.fixture
def refusing(db: None) -> Refusing:
    """A cluster with a namespace that was labelled by hand, those of two tenants, the first of which refuses, and
    those of tests."""
    tenants = [Tenant.objects.create(slug=slug, name=slug).namespace for slug in ("a", "b")]
    api = Refusing({tenants[0]: 500})
    for name in ("berth-0", "zoo", *tenants, *(registries.places() - {*tenants})):
        own = {**labels.instance_selector(), labels.TENANT: "a"}
        api.apply({"kind": "Namespace", "metadata": {"name": name, "labels": own}})
    return api


def test_only_berths_own_namespaces_get_it_and_one_that_refuses_keeps_it_from_no_other(
    refusing: Refusing, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = registries.secret(cluster_with(ROBOT), "zoo", labels.instance_selector())
    assert foreign
    refusing.apply(foreign)  # as an earlier version left it
    with pytest.raises(ClusterRefused):
        registries.refresh(cluster_with(ROBOT), refusing)  # type: ignore[arg-type]
    instance = Installation.current_id()
    tests = {of_tests.namespace(instance), *of_proofs.namespaces(instance)}
    assert refusing.secrets() == {"berth-b", *tests} and len(tests) == 3
    assert "berth-a" in caplog.text and ROBOT.password not in caplog.text


def test_a_secret_that_cannot_be_deleted_is_told_of(
    refusing: Refusing, caplog: pytest.LogCaptureFixture
) -> None:
    refusing.refused = {"berth-a": 403}
    registries.refresh(cluster_with(secret_accounts=[{"kind": "User", "name": "berth"}]), refusing)  # type: ignore[arg-type]
    (told,) = caplog.records
    assert told.levelname == "WARNING" and "berth-a" in told.getMessage()


# --- entered


def test_an_admin_enters_changes_and_removes_them_and_never_reads_a_password(db: None) -> None:
    client = Client()
    client.force_login(User.objects.create_user("admin", is_staff=True))
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    address = f"/admin/clusters/cluster/{cluster.pk}/change/"

    def post(lines: str) -> str:
        form = client.get(address).context["adminform"].form
        shown = {field.name: field.value() for field in form if field.value() not in (None, False)}
        answer = client.post(address, shown | {"sign_ons": lines}, follow=True)
        assert answer.status_code == 200
        cluster.refresh_from_db()
        return text_of(answer) + text_of(client.get(address))

    shown = post("registry.example robot hush")
    assert [(one.host, one.password) for one in registries.sign_ons(cluster)] == [
        ("registry.example", "hush")
    ]
    shown += post("registry.example robot kept\nnvcr.io $oauthtoken hush2\nbad line")
    assert len(registries.sign_ons(cluster)) == 1  # the faulty line refused all of it
    shown += post("registry.example robot kept\nnvcr.io $oauthtoken hush2")
    assert [one.password for one in registries.sign_ons(cluster)] == ["hush", "hush2"]
    assert "registry.example robot kept" in shown and "hush" not in shown
    sealed = cluster.registries
    post("registry.example robot kept\r\nnvcr.io $oauthtoken kept")
    assert cluster.registries == sealed
    assert "hush" not in str(list(AuditEntry.objects.values_list("data", flat=True)))
    post("")
    assert cluster.registries == ""
