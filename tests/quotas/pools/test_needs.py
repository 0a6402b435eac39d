"""Pools by GPU requirements: those that meet them, the cheapest first."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from quotas.models import Pool
from quotas.pools.needs import GpuAsked, fits, price
from tests.shared.clients import browser
from tests.shared.stage import Stage

SAID = {"gpu_memory_mib": 40_960, "compute_capability": "8.0", "ecc": True}
A100 = {"gpu_product": "NVIDIA-A100-SXM4-40GB", **SAID}


@pytest.mark.parametrize(
    ("asked", "enough"),
    [
        ({}, True),
        ({"min_memory_mib": 40_960}, True),
        ({"min_memory_mib": 40_961}, False),
        ({"min_compute_capability": "8.0"}, True),
        ({"min_compute_capability": "7"}, True),
        ({"min_compute_capability": "8.6"}, False),
        ({"min_compute_capability": "10.0"}, False),  # compared as numbers
        ({"ecc": True}, True),
        ({"ecc": False}, False),
        ({"product": "a100"}, True),
        ({"product": "a100 sxm4"}, True),
        ({"product": "H100"}, False),
    ],
)
def test_a_gpu_is_enough_when_it_has_all_that_is_asked(asked: dict[str, Any], enough: bool) -> None:
    assert fits(Pool(**A100), GpuAsked(**asked)) is enough


def test_what_nobody_has_said_is_not_enough() -> None:
    assert fits(Pool(), GpuAsked())
    assert not fits(Pool(), GpuAsked(ecc=True))
    assert not fits(Pool(), GpuAsked(min_memory_mib=1))
    assert not fits(Pool(resource_name="", **A100), GpuAsked())


def test_what_a_pool_chooses_its_nodes_for_it_has() -> None:
    chosen = Pool(match_ecc=True, match_gpu_memory_mib=40_000, match_compute_capability="8.6")
    assert fits(chosen, GpuAsked(ecc=True, min_memory_mib=40_000, min_compute_capability="8.6"))


def test_the_memory_is_that_of_a_unit() -> None:
    cut = Pool(**A100, unit_memory_mib=4864, units_per_gpu=7)
    assert not fits(cut, GpuAsked(min_memory_mib=10_000))
    assert price(cut, 2) == Fraction(2, 7)
    assert price(Pool(weight=Decimal("2.5")), 2) == 5


@pytest.mark.django_db
def test_the_api_lists_the_pools_that_fit_the_cheapest_first(stage: Stage) -> None:
    # The pool a100 has 80 GB and weight 1.
    stage.another_pool("h100", gpu_memory_mib=81_559, compute_capability="9.0", weight=4)
    stage.another_pool("mig", gpu_memory_mib=81_920, unit_memory_mib=9728, units_per_gpu=7, sharing="mig")
    stage.another_pool("a100-40", **A100, weight=Decimal("0.5"))
    client = browser(stage.cast.bob)

    def slugs(query: str) -> list[str]:
        page = client.get(f"/api/v1/pools/?{query}").json()
        assert page["next"] is None
        return [pool["slug"] for pool in page["results"]]

    assert slugs("min_memory_mib=8000") == ["mig", "a100-40", "a100", "h100"]
    assert slugs("min_memory_mib=40000&min_compute_capability=8.0") == ["a100-40", "a100", "h100"]
    assert slugs("min_memory_mib=40000&ecc=true&product=A100") == ["a100-40"]
    assert slugs("min_memory_mib=1&search=h100") == ["h100"]
    assert client.get("/api/v1/pools/?min_compute_capability=eight").status_code == 400
