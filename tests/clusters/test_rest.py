"""Tests that clusters and nodes are shown to admins only; other people have the pools."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.access import Actor
from accounts.credentials import tokens
from tests.cast import Cast, make_cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


def ask(actor: Actor | None, path: str, *scopes: str) -> tuple[int, dict]:
    headers = {}
    if actor is not None:
        _, secret = tokens.issue(actor.user, "test", list(scopes) or ["read", "admin"], None, 1)
        headers = {"Authorization": f"Bearer {secret}"}
    answer = Client(headers=headers).get(f"/api/v1/{path}")
    return answer.status_code, answer.json()


def test_an_admin_sees_clusters_and_nodes(cast: Cast) -> None:
    status, clusters = ask(cast.admin, "clusters/")
    assert (status, [c["slug"] for c in clusters["results"]]) == (200, ["main"])
    status, nodes = ask(cast.admin, "nodes/?limit=1")
    assert (status, nodes["results"][0]["name"]) == (200, "gpu-1")
    assert nodes["results"][0]["allocatable"]["nvidia.com/gpu"] == 4
    assert nodes["next"]
    assert [n["name"] for n in ask(cast.admin, "nodes/?search=gpu-2")[1]["results"]] == ["gpu-2"]


def test_an_admin_sees_what_doctor_finds(cast: Cast) -> None:
    status, found = ask(cast.admin, "clusters/main/doctor/")
    assert (status, [(one["check"], one["level"]) for one in found["results"]]) == (
        200,
        [("connection", "fail")],
    )
    assert found["results"][0]["hint"]
    cast.cluster.refresh_from_db()
    assert cast.cluster.doctor_failures == {"connection": 1}
    assert ask(cast.admin, "clusters/nowhere/doctor/")[0] == 404


@pytest.mark.parametrize("path", ["clusters/", "nodes/", "clusters/main/doctor/"])
def test_nobody_else_does(cast: Cast, path: str) -> None:
    assert ask(None, path)[0] == 401
    assert ask(cast.alice, path, "read")[0] == 403
    assert ask(cast.admin, path, "read")[0] == 403


def test_how_a_cluster_is_reached_is_not_told(cast: Cast) -> None:
    assert "kubeconfig_path" not in ask(cast.admin, "clusters/")[1]["results"][0]
