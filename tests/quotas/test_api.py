"""`pools/`, `flavors/` and `quotas/` as a program sees them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.access import Actor
from quotas.models import Flavor
from tests.shared.clients import browser
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db


def get(stage: Stage, path: str, by: Actor | None = None) -> dict[str, Any]:
    response = browser(by or stage.cast.alice).get(f"/api/v1/{path}")
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize("path", ["pools/", "flavors/", "quotas/"])
def test_signing_in_is_required(stage: Stage, path: str) -> None:
    response = Client().get(f"/api/v1/{path}")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_signed_in"


def test_pools_have_the_shape_of_the_contract(stage: Stage) -> None:
    stage.running(1)
    [pool] = get(stage, "pools/")["results"]
    assert {
        "slug": "a100",
        "name": "A100",
        "cluster": "main",
        "gpu": {
            "product": "NVIDIA-A100-SXM4-80GB",
            "memory_mib": 81_920,
            "compute_capability": "8.0",
            "ecc": None,
        },
        "sharing": "exclusive",
        "isolation": "dedicated",
        "gpus": {"total": 8, "free": 7, "mine": 1},
        "largest_free_on_one_node": 4,
        "waiting": 0,
        "next_free_at": None,
    }.items() <= pool.items()


def test_flavors_are_sizes_in_gpus_and_cores(stage: Stage) -> None:
    shared = stage.another_pool("t4-shared", units_per_gpu=4)
    Flavor.objects.create(
        slug="t4-quarter", name="A quarter", pool=shared, units=1, cpu_millicores=1500, memory_mib=8192
    )
    assert get(stage, "flavors/?pool=t4-shared")["results"] == [
        {
            "slug": "t4-quarter",
            "name": "A quarter",
            "pool": "t4-shared",
            "gpus": 0.25,
            "cpu": 1.5,
            "memory_mib": 8192,
        }
    ]


def test_people_see_the_quotas_and_limits_of_their_own_tenants(stage: Stage) -> None:
    stage.running(3)
    body = get(stage, "quotas/", stage.cast.victor)
    assert body["results"] == [
        {
            "tenant": "demo",
            "pool": "a100",
            "nominal_gpus": 4,
            "borrowed_gpus": 0,
            "used_gpus": 3,
            "limit_gpus": 4,
            "weight": 1,
            "longest_runtime_minutes": None,
        }
    ]
    assert [limits["tenant"] for limits in body["limits"]] == ["demo"]
    assert get(stage, "quotas/?tenant=second", stage.cast.victor)["results"] == []
    for actor, tenants in ((stage.cast.carol, {"second"}), (stage.cast.admin, {"demo", "second"})):
        assert {quota["tenant"] for quota in get(stage, "quotas/", actor)["results"]} == tenants


def test_lists_go_on_by_cursor(stage: Stage) -> None:
    for number in range(4):
        stage.another_pool(f"pool-{number}")
    first = get(stage, "pools/?limit=3")
    assert [pool["slug"] for pool in first["results"]] == ["a100", "pool-0", "pool-1"]
    rest = browser(stage.cast.alice).get(first["next"]).json()
    assert [pool["slug"] for pool in rest["results"]] == ["pool-2", "pool-3"]
    assert rest["next"] is None


def test_quotas_go_on_by_cursor(stage: Stage) -> None:
    first = get(stage, "quotas/?limit=1", stage.cast.admin)
    rest = browser(stage.cast.admin).get(first["next"]).json()
    tenants = [quota["tenant"] for quota in (*first["results"], *rest["results"])]
    assert sorted(tenants) == ["demo", "second"]


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("slug=a100", ["a100"]),
        ("sharing=mig", ["mig"]),
        ("cluster=main", ["a100", "mig"]),
        ("cluster=none", []),
        ("search=mi", ["mig"]),
    ],
)
def test_pools_are_filtered_and_searched(stage: Stage, query: str, slugs: list[str]) -> None:
    stage.another_pool("mig", sharing="mig")
    assert [pool["slug"] for pool in get(stage, f"pools/?{query}")["results"]] == slugs
