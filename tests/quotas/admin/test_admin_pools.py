"""The form of a pool: its faults at their fields, and its nodes before and after it is saved."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from quotas.models import Pool
from tests.admin_forms import hidden, text_of
from tests.cast import PRODUCT
from tests.shared.stage import GPU, Stage

pytestmark = pytest.mark.django_db
POOLS = "/admin/quotas/pool/"
INLINES = {
    f"{prefix}-{name}": "0" for prefix in ("flavors", "quotas") for name in ("TOTAL_FORMS", "INITIAL_FORMS")
}


def filled_in(stage: Stage, **values: Any) -> dict[str, Any]:
    like_new = {
        "name": "Large", "slug": "large", "cluster": stage.cast.cluster.pk, "match_product": PRODUCT,
        "node_labels": "", "tolerations": "", "image_pull_secrets": "", "match_ecc": "unknown", "ecc": "unknown",
        "sharing": "exclusive", "resource_name": GPU, "units_per_gpu": 1, "weight": 1, "cpu_overcommit": 1,
        "memory_overcommit": 1,
    }  # fmt: skip
    return like_new | INLINES | values


def test_a_fault_stands_at_its_field_and_nothing_is_saved(stage: Stage, admin: Client) -> None:
    page = admin.post(f"{POOLS}add/", filled_in(stage, units_per_gpu=4, node_labels='["zone"]'))
    assert page.status_code == 200
    assert "Whole GPUs are not cut" in text_of(page)
    assert "Write labels as" in text_of(page)
    assert not Pool.objects.filter(slug="large").exists()


def test_a_pool_is_made_and_its_nodes_are_said(stage: Stage, admin: Client) -> None:
    page = admin.post(f"{POOLS}add/", filled_in(stage), follow=True)
    assert "2 nodes belong to it now, with 8 GPUs." in text_of(page)
    made = Pool.objects.get(slug="large")
    assert (made.match_product, made.node_labels, made.tolerations, made.image_pull_secrets) == (
        PRODUCT, {}, [], [],
    )  # fmt: skip


def test_its_nodes_are_shown_before_it_is_saved(stage: Stage, admin: Client) -> None:
    stage.change_node("gpu-2", unschedulable=True)
    stage.node("gpu-3", capacity={GPU: 6})
    stage.node("cpu-9", labels={})
    page = admin.post(f"{POOLS}add/", filled_in(stage) | {"_nodes": "yes"})
    assert "3 nodes belong to it now, with 12 GPUs." in text_of(page)
    assert ["cordoned" in text_of(page), "2 GPUs broken" in text_of(page)] == [True, True]
    assert "cpu-9" not in text_of(page)
    assert not Pool.objects.filter(slug="large").exists()
    # Its button saves what was entered.
    admin.post(f"{POOLS}add/", hidden(page) | {"_save": "yes"})
    assert Pool.objects.get(slug="large").match_product == PRODUCT


def test_a_pool_that_no_node_belongs_to_is_saved_with_a_warning(stage: Stage, admin: Client) -> None:
    page = admin.post(f"{POOLS}add/", filled_in(stage, match_compute_capability="9.0"), follow=True)
    assert "No node belongs to it now" in text_of(page)
    assert Pool.objects.filter(slug="large").exists()


def test_the_products_that_there_are_stand_beside_the_field(stage: Stage, admin: Client) -> None:
    stage.node("mig-1", labels={"nvidia.com/gpu.product": "NVIDIA-H100-MIG-1g.10gb-SHARED"})
    page = text_of(admin.get(f"{POOLS}add/"))
    assert f"There are: {PRODUCT}, NVIDIA-H100." in page
    assert "79 finds cards of 80 GB" in page  # their label says 79.6 GiB


def test_a_flavor_is_of_a_size_that_its_pool_gives(stage: Stage, admin: Client) -> None:
    """The pool counts as the same form is about to save it."""
    flavor = {"name": "Two", "slug": "two", "units": 2, "cpu_millicores": "4.5", "memory_mib": "0.5"}
    filled = filled_in(stage) | {f"flavors-0-{name}": value for name, value in flavor.items()}
    filled |= {"flavors-TOTAL_FORMS": "1"}
    cut = {"sharing": "mig", "resource_name": "nvidia.com/mig-1g.10gb", "units_per_gpu": 7}
    page = admin.post(f"{POOLS}add/", filled | cut)
    assert page.status_code == 200
    assert "A program sees one MIG instance only" in text_of(page)
    assert not Pool.objects.filter(slug="large").exists()
    assert admin.post(f"{POOLS}add/", filled).status_code == 302
    two = Pool.objects.get(slug="large").flavors.get()
    assert (two.units, two.cpu_millicores, two.memory_mib) == (2, 4500, 512)  # given in cores and GiB
    shown = admin.get(f"/admin/quotas/flavor/{two.pk}/change/").context["adminform"].form
    assert (shown["cpu_millicores"].value(), shown["memory_mib"].value()) == ("4.5", "0.5")
