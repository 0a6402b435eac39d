"""The configuration as one file: exported, imported, compared, and refused with its lines."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml
from django.test import Client

from accounts.models import AuditEntry, Membership, Tenant, User
from clusters.models import Cluster
from clusters.site import registries
from monitoring.models import IdlePolicy
from portal.configuration.kinds import KINDS
from quotas.models import Budget, Flavor, Pool, Quota, TenantLimit
from tests.cast import Cast
from tests.shared.clients import browser
from workloads.logs.models import LogLimit
from workloads.models import Image

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/configuration/"


@pytest.fixture
def client(cast: Cast) -> Client:
    Cluster.objects.update(kubeconfig_path="/etc/berth/clusters/main/kubeconfig")
    return browser(cast.admin)


def put(client: Client, text: str, query: str = "") -> Any:
    return client.put(f"{ADDRESS}{query}", text, content_type="application/yaml")


def done(client: Client, text: str, query: str = "") -> dict[str, Any]:
    response = put(client, text, query)
    assert response.status_code == 200, response.content.decode()
    body: dict[str, Any] = response.json()
    return body


def faults(client: Client, text: str) -> dict[str, list[str]]:
    response = put(client, text)
    assert response.status_code == 422, response.content.decode()
    assert response.json()["error"]["code"] == "configuration_invalid"
    fields: dict[str, list[str]] = response.json()["error"]["fields"]
    return fields


def exported(client: Client) -> str:
    response = client.get(ADDRESS)
    assert (response.status_code, response["Content-Type"]) == (200, "application/yaml; charset=utf-8")
    return response.content.decode()


def furnish(cast: Cast) -> None:
    """Add an object of each kind that the cast lacks, with values that need their types and their units."""
    shared = Pool.objects.create(
        slug="t4", name="T4", cluster=cast.cluster, sharing="time-slicing", units_per_gpu=7, weight=Decimal("0.25"),
        node_labels={"zone": "007"}, is_open=False, match_ecc=False,
        tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )  # fmt: skip
    Flavor.objects.create(
        slug="t4-2", name="t4: 2", pool=shared, units=2, cpu_millicores=1500, memory_mib=4096
    )
    TenantLimit.objects.create(
        tenant=cast.demo, memory_mib=65_536, image_prefixes="ghcr.io/lab/\nquay.io/lab/"
    )
    LogLimit.objects.create(tenant=cast.demo, days=7)
    Budget.objects.create(tenant=cast.demo, gpu_hours=Decimal("100.5"))
    Budget.objects.create(tenant=cast.demo, user=cast.bob.user, gpu_hours=10)
    IdlePolicy.objects.create(minutes=90, gpu_percent=2.5)
    IdlePolicy.objects.create(pool=shared, is_active=False)
    IdlePolicy.objects.create(
        tenant=cast.demo, pool=shared, night_minutes=30, night_from="22:00", night_until="06:30:05",
        time_zone="Asia/Seoul",
    )  # fmt: skip


def empty(cast: Cast) -> None:
    for kind in reversed(KINDS):
        kind.rows().exclude(pk=cast.admin.user.pk).delete()


def test_what_is_exported_comes_back_into_an_empty_database(cast: Cast, client: Client) -> None:
    furnish(cast)
    first = exported(client)
    empty(cast)
    assert not Tenant.objects.exists() and not User.objects.filter(username="bob").exists()
    counts = {kind.name: len(yaml.safe_load(first)[kind.name]) for kind in KINDS}
    assert all(counts.values()), counts

    made = done(client, first)["created"]
    assert len(made) == sum(counts.values()) - 1  # the admin was there
    assert exported(client) == first
    assert done(client, first) == {"dry_run": False, "created": [], "changed": [], "deleted": []}
    bob = User.objects.get(username="bob")
    assert not bob.has_usable_password()
    assert Budget.objects.get(user=bob).gpu_hours == 10
    policies = [one for one in made if one["kind"] == "idle_policies"]
    assert [one["key"] for one in policies] == ["*", "*/t4", "demo/t4"]
    night = {name: policies[2]["fields"][f"night_{name}"] for name in ("minutes", "from", "until")}
    assert night == {"minutes": 30, "from": "22:00", "until": "06:30:05"}
    assert (
        AuditEntry.objects.get(action="pool.create", target_id=str(Pool.objects.get(slug="t4").pk)).actor_name
        == "admin"
    )


def test_a_dry_run_answers_the_difference_and_writes_nothing(cast: Cast, client: Client) -> None:
    text = """
pools:
- slug: a100
  weight: 2
  name: A100
flavors:
- {slug: a100-2, name: Two, pool: a100, gpus: 2, cpu: 8, memory_mib: 32768}
quotas: []
delete_absent: [quotas]
"""
    before = exported(client)
    asked = done(client, text, "?dry_run=true")
    assert asked["changed"] == [{"kind": "pools", "key": "a100", "fields": {"weight": {"old": 1, "new": 2}}}]
    assert [one["key"] for one in asked["created"]] == ["a100-2"]
    assert [one["key"] for one in asked["deleted"]] == ["second/a100", "demo/a100"]
    assert exported(client) == before and not AuditEntry.objects.filter(outcome="done").exists()

    assert done(client, text) == asked | {"dry_run": False}
    assert not Quota.objects.exists()
    [entry] = AuditEntry.objects.filter(action="pool.change")
    assert (entry.data["before"], entry.data["after"]) == ({"weight": "1"}, {"weight": "2"})


def test_a_faulty_file_changes_nothing_and_names_its_lines(cast: Cast, client: Client) -> None:
    text = """pools:
- slug: new
  name: New
  cluster: main
- slug: wrong
  name: Wrong
  cluster: nowhere
  sharing: mig
flavors:
- slug: f
  name: F
  pool: wrong
  cpu: 1
  memory_mib: 1024
- slug: a100-1
  gpus: 0.3
quotas:
- tenant: demo
  pool: a100
  nominal_gpus: "4"
  surprise: 1
- {tenant: demo, pool: a100, nominal_gpus: -1}
tenants:
- slug: kube-x
  name: X
- name: no slug
surprises: []
idle_policies:
- {night_minutes: 30}
- {tenant: demo, night_from: 25:00}
people:
- username: eve
  last_name: "a\\u202eb"
"""
    before = exported(client)
    found = faults(client, text)
    assert list(found) == [f"line {line}" for line in (7, 16, 21, 22, 24, 26, 27, 29, 30, 33)]
    assert exported(client) == before


def test_a_cluster_s_kubeconfig_is_kept_and_never_in_the_file(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://192.0.2.1:6443"}}],
        "users": [{"name": "x", "user": {"token": "very-secret"}}],
    }
    far = "clusters: [{slug: far, name: Far, connection: pasted, kubeconfig: %s}]"
    [[text]] = faults(client, far % "'env:BERTH_SECRET_KEY'").values()
    assert "BERTH_KUBECONFIG_" in text
    assert list(faults(client, far % "kept")) == ["line 1"]
    assert "secret" in str(faults(client, far % '"apiVersion: v1"'))

    monkeypatch.setenv("BERTH_KUBECONFIG_FAR", yaml.safe_dump(kubeconfig))
    done(client, far % "env:BERTH_KUBECONFIG_FAR")
    sealed = Cluster.objects.get(slug="far").kubeconfig
    assert sealed and "very-secret" not in exported(client) + sealed
    assert not done(client, far % "env:BERTH_KUBECONFIG_FAR")["changed"]
    assert not done(client, exported(client))["changed"]

    kubeconfig["users"] = [{"name": "x", "user": {"token": "another"}}]
    monkeypatch.setenv("BERTH_KUBECONFIG_FAR", yaml.safe_dump(kubeconfig))
    [changed] = done(client, far % "env:BERTH_KUBECONFIG_FAR")["changed"]
    assert list(changed["fields"]) == ["kubeconfig"]
    assert Cluster.objects.get(slug="far").kubeconfig != sealed


def test_passwords_of_registries_are_kept_and_never_in_the_file(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(password: str) -> str:
        entry = f"{{host: registry.example, username: robot, password: {password}}}"
        return f"clusters: [{{slug: main, registries: [{entry}]}}]"

    assert "secret" in str(faults(client, of("hush")))
    assert list(faults(client, of("kept"))) == list(faults(client, of("'env:PATH'"))) == ["line 1"]
    monkeypatch.setenv("BERTH_REGISTRY_LAB", "very-secret")
    done(client, of("env:BERTH_REGISTRY_LAB"))
    [one] = registries.sign_ons(Cluster.objects.get(slug="main"))
    assert (one.host, one.username, one.password) == ("registry.example", "robot", "very-secret")
    assert "very-secret" not in exported(client)
    assert not done(client, of("env:BERTH_REGISTRY_LAB"))["changed"]
    assert not done(client, exported(client))["changed"]
    monkeypatch.setenv("BERTH_REGISTRY_LAB", "another")
    [changed] = done(client, of("env:BERTH_REGISTRY_LAB"))["changed"]
    assert list(changed["fields"]) == ["registries"] and "another" not in str(changed)
    body = {"registries": [{"host": "registry.example", "username": "robot", "password": "by-rest"}]}
    answer = client.patch("/api/v1/clusters/main/", body, content_type="application/json")
    assert answer.status_code == 200
    assert answer.json()["registries"] == [body["registries"][0] | {"password": "kept"}]
    assert registries.sign_ons(Cluster.objects.get(slug="main"))[0].password == "by-rest"


def test_what_is_in_use_is_not_deleted(cast: Cast, client: Client) -> None:
    assert list(faults(client, "delete_absent: [clusters]\nclusters: []")) == ["line 1"]
    found = faults(client, "pools: []\ndelete_absent: [pools]\nquotas:\n- {tenant: demo, pool: a100}\n")
    assert list(found) == ["line 2"]
    assert "4" in found["line 2"][0]
    found = faults(client, "delete_absent:\n- flavors\n- images\nimages:\n")
    assert list(found) == ["line 2", "line 3"] and "flavors: []" in found["line 2"][0]
    assert Flavor.objects.exists()
    done(client, "flavors: []\nimages: []\ndelete_absent: [flavors, images]")
    assert Pool.objects.exists() and not Flavor.objects.exists() and not Image.objects.exists()


def test_an_owner_hands_over_in_one_file(cast: Cast, client: Client) -> None:
    done(
        client,
        "memberships: [{tenant: demo, user: alice, role: viewer}, {tenant: demo, user: bob, role: owner}]",
    )
    roles = dict(Membership.objects.filter(tenant=cast.demo).values_list("user__username", "role"))
    assert (roles["alice"], roles["bob"]) == ("viewer", "owner")
    assert list(faults(client, "memberships:\n- {tenant: demo, user: bob, role: member}")) == ["line 2"]


def test_only_admins_with_whole_tokens_read_and_write_it(cast: Cast) -> None:
    assert browser(cast.alice).get(ADDRESS).status_code == 403
    assert put(browser(cast.alice), "pools: []").status_code == 403
    assert Client().get(ADDRESS).status_code == 401
    assert browser(cast.admin).put(ADDRESS, b"x", content_type="image/png").status_code == 415
