"""Tests of the first-run guide: from nothing to a ready workspace over HTTP, and what it says of wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from accounts.models import AuditEntry, Membership, Role, User
from clusters.connections import api_for
from clusters.models import Cluster
from portal.first_run.steps import CLUSTER, IMAGE, ISOLATION, POOLS, TENANT, TRY, current, is_complete, steps
from quotas.models import Pool, Quota
from tests.shared.driving import clear_away, drive, in_phase
from workloads.models import Image
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("root", is_staff=True))
    return client


def post(client: Client, step: str, **fields: Any) -> Any:
    return client.post(f"/first-run/{step}/", fields)


def shown(page: Any) -> dict[str, Any]:
    """First values of the form on the page, as a browser sends them."""
    form = page.context["form"]
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def test_it_leads_from_nothing_to_a_ready_workspace(admin: Client, played_cluster: Path) -> None:
    assert "/first-run/" in admin.get("/").content.decode()
    assert admin.get("/first-run/").context["slug"] == CLUSTER
    pasted = played_cluster.read_text()
    sent = {"name": "Lab", "connection": "pasted", "kubeconfig": pasted, "once": "1"}
    answer = post(admin, CLUSTER, **sent)
    assert answer.status_code == 302, answer.context["form"].errors
    assert post(admin, CLUSTER, **sent).status_code == 302  # a second press of the button
    cluster = Cluster.objects.get()
    assert cluster.slug == "lab" and cluster.found_networks and cluster.doctor_at and cluster.nodes.exists()
    assert api_for(cluster).list("Node")

    if current(steps()).slug == ISOLATION:
        assert post(admin, ISOLATION).status_code == 422
        assert post(admin, ISOLATION, without="on").status_code == 302
    found = admin.get("/first-run/").context
    assert found["slug"] == POOLS
    assert post(admin, POOLS, **shown(admin.get("/first-run/"))).status_code == 302
    assert Pool.objects.exclude(resource_name="").exists()
    assert not admin.get(f"/first-run/{POOLS}/").context["form"].plans  # a second time it would make nothing

    asked = shown(admin.get("/first-run/"))
    assert post(admin, TENANT, **asked | {"people": "nobody"}).context["form"].errors["people"]
    assert post(admin, TENANT, **asked).status_code == 302
    assert Membership.objects.get().role == Role.OWNER
    assert all(quota.nominal_gpus > 0 for quota in Quota.objects.all())

    asked = shown(admin.get("/first-run/")) | {"reference": "berth.local/jupyter:1"}
    assert post(admin, IMAGE, **asked | {"uid": 0}).status_code == 422
    assert post(admin, IMAGE, **asked).status_code == 302
    assert Image.objects.get().slug == "jupyterlab"

    assert admin.get("/first-run/").context["slug"] == TRY
    answer = post(admin, TRY, once="1")
    workspace = Workspace.objects.get()
    assert answer["Location"] == f"/workspaces/{workspace.pk}/" == post(admin, TRY, once="1")["Location"]
    try:
        drive(workspace, in_phase("ready"))
    finally:
        clear_away(workspace.tenant.namespace, api_for(cluster))
    assert is_complete()
    assert "/first-run/" not in admin.get("/").content.decode()
    kept = yaml.safe_load(pasted)["users"][0]["user"]
    secret = next(iter(kept.values()), "")
    told = "".join(str(entry.data) for entry in AuditEntry.objects.all())
    assert not secret or secret not in cluster.kubeconfig + told


def test_nobody_but_an_admin_sees_it(admin: Client) -> None:
    member = Client()
    member.force_login(User.objects.create_user("bob"))
    assert member.get("/first-run/").status_code == 403
    assert post(member, CLUSTER, name="x").status_code == 403
    assert "/first-run/" not in member.get("/").content.decode()


def test_a_cluster_that_cannot_be_reached_is_not_saved(admin: Client) -> None:
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "very-secret"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    }
    page = post(admin, CLUSTER, name="Lab", connection="pasted", kubeconfig=yaml.safe_dump(config))
    assert page.status_code == 422
    assert "Nothing listens" in page.context["form"].errors["kubeconfig"][0]
    assert not Cluster.objects.exists()
