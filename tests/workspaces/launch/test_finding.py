"""Search for a GPU by its requirements: the cheapest that the tenant may use, and which of them start now."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from html import unescape
from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from quotas.pools.needs import GpuAsked
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_pool as pool
from workloads.sizes.sizing import SizeAsked, found, resolve
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
WISH = {"tenant": "demo", "name": "x", "image": "jupyter", "flavor": "*"}


def asked(gpus: int | None = None, **need: Any) -> SizeAsked:
    return SizeAsked(gpu=GpuAsked(**need), gpus=None if gpus is None else Fraction(gpus))


def slugs(cast: Cast, wish: SizeAsked) -> list[str]:
    return [one.size.pool.slug for one in found(cast.demo, wish)]


def test_the_cheapest_comes_first_even_if_it_does_not_start_now(cast: Cast) -> None:
    pool(cast, "cheap", weight=Decimal("0.5"))
    pool(cast, "dear", weight=3)
    Node.objects.filter(name="cheap").update(ready=False)
    names = [(one.size.pool.slug, one.price, one.outlook["starts_now"]) for one in found(cast.demo, asked())]
    assert names == [("cheap", Fraction(1, 2), False), ("a100", 1, True), ("dear", 3, True)]
    assert resolve(cast.demo, asked()).pool.slug == "cheap"


def test_at_the_same_price_a_pool_that_starts_now_comes_first_then_the_smaller_gpu(cast: Cast) -> None:
    pool(cast, "large", gpu_memory_mib=141_000)
    assert slugs(cast, asked(min_memory_mib=40_000)) == ["a100", "large"]
    cast.cluster.nodes.filter(name__startswith="gpu-").update(unschedulable=True)
    assert slugs(cast, asked(min_memory_mib=40_000)) == ["large", "a100"]


def test_a_sufficient_part_of_a_gpu_is_cheaper_than_a_whole_one(cast: Cast) -> None:
    pool(cast, "mig", sharing="mig", units_per_gpu=7, unit_memory_mib=9728, gpus=14)
    assert slugs(cast, asked(min_memory_mib=9000)) == ["mig", "a100"]
    assert slugs(cast, asked(min_memory_mib=10_000)) == ["a100"]
    # Whole GPUs are never MIG instances: a program sees only one instance.
    assert slugs(cast, asked(1, min_memory_mib=9000)) == ["a100"]


def test_a_gpu_that_is_cut_by_memory_gives_no_more_than_is_needed(cast: Cast) -> None:
    pool(cast, "hami", sharing="hami", units_per_gpu=100)
    by_pool = {one.size.pool.slug: one for one in found(cast.demo, asked(min_memory_mib=8192))}
    assert by_pool["hami"].price == Fraction(1, 10)


def test_a_pool_without_a_share_or_out_of_use_is_not_offered(cast: Cast) -> None:
    pool(cast, "others", quota=0, weight=Decimal("0.1"))
    pool(cast, "closed", is_open=False, weight=Decimal("0.1"))
    assert slugs(cast, asked()) == ["a100"]


def answer(client: Client, gpu_memory_gb: int) -> str:
    """Return the launch form's answer to a wish for such a GPU."""
    page = client.post("/launch/answer/", WISH | {"gpu_memory_gb": str(gpu_memory_gb)})
    return str(page.content.decode())


def test_the_launch_form_lists_the_pools_that_fit(cast: Cast) -> None:
    pool(cast, "cheap", weight=Decimal("0.5"), gpu_memory_mib=81_559)  # what programs have of an H100's 80 GB
    pool(cast, "small", gpu_memory_mib=40_960)
    listed = re.findall(
        r"<li>.*?>(\w+)</.*?per hour: ([\d.]+) · (\w+) · ([\w ]+)<", answer(browser(cast.bob), 80)
    )
    assert listed == [("cheap", "0.5", "dedicated", "starts now"), ("A100", "1", "dedicated", "starts now")]


def test_another_pool_than_the_cheapest_is_one_click_away(cast: Cast) -> None:
    pool(cast, "cheap", weight=Decimal("0.5"))
    client = browser(cast.bob)
    [link] = re.findall(r'href="([^"]*in_pool=a100)" data-fills', answer(client, 40))
    assert "Starts now on A100" in client.get(unescape(link)).content.decode()
    client.post("/launch/", WISH | {"gpu_memory_gb": "40", "in_pool": "a100"})
    assert Workspace.objects.get().pool == cast.pool
