"""The queue as admins see it: its order, reasons and times; preemptions; requests that can never start."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Node
from quotas.models import Claim, Quota
from tests.admin_forms import text_of
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = pytest.mark.django_db

CLAIMS = "/admin/quotas/claim/"


def waiting(cast: Cast, name: str, **claim: Any) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.WAITING, name=name)
    Claim.objects.filter(holder_id=workspace.pk).update(**claim)


def asked_back(cast: Cast, name: str) -> None:
    workspace = make_workspace(cast, cast.carol, name=name)
    soon = timezone.now() + timedelta(minutes=9)
    Claim.objects.filter(holder_id=workspace.pk).update(reclaim_at=soon, reclaim_code="owner_waits")


def test_who_waits_stands_in_the_order_of_the_queue_with_why_and_when(cast: Cast, admin: Client) -> None:
    soon = timezone.now() + timedelta(hours=1)
    waiting(cast, "second", position=2, units_ahead=1, reason_code="behind_others")
    waiting(
        cast, "first", position=1, units_ahead=0, estimated_from=soon, estimated_to=soon + timedelta(hours=1)
    )
    waiting(cast, "third", position=3, units_ahead=2)
    make_workspace(cast, cast.alice, name="runs")
    page = admin.get(f"{CLAIMS}?state__exact=waiting").content.decode()
    assert re.findall(r">(first|second|third|runs)<", page) == ["first", "second", "third"]
    assert re.findall(r'field-queue_place">(\d+)', page) == ["1", "2", "3"]
    assert "Earlier requests wait for this pool." in page
    assert "etween" in page


def test_runs_that_are_asked_back_are_shown_with_until_when_and_why(cast: Cast, admin: Client) -> None:
    asked_back(cast, "borrowed")
    make_workspace(cast, cast.alice, name="own")
    overview = admin.get("/admin/").content.decode()
    assert "1 run has to return borrowed GPUs" in overview
    page = text_of(admin.get(f"{CLAIMS}?queue=asked_back"))
    assert "borrowed" in page and "being reclaimed, stops on" in page
    assert "alice in Demo" not in page


def test_who_can_never_start_needs_attention(cast: Cast, admin: Client) -> None:
    waiting(cast, "patient", reason_code="no_free_gpus", reason_data={"free_gpus": 0, "gpus": 1})
    assert "cannot start" not in admin.get("/admin/").content.decode()
    waiting(cast, "stuck", reason_code="above_quota", reason_data={"gpus": 8, "limit_gpus": 4})
    assert "1 waiting request cannot start." in admin.get("/admin/").content.decode()
    page = text_of(admin.get(f"{CLAIMS}?queue=never"))
    assert "stuck" in page and "patient" not in page


def test_quotas_tell_what_is_borrowed_and_waited_for(cast: Cast, admin: Client) -> None:
    Quota.objects.filter(tenant=cast.demo).update(nominal_gpus=1, borrowing_limit_gpus=3)
    for name in ("one", "two"):
        make_workspace(cast, cast.bob, name=name)
    waiting(cast, "three", units=2)
    page = admin.get("/admin/quotas/quota/").content.decode()
    assert '<span class="usage-words">2 of 4, 1 borrowed</span>' in page
    assert '<rect class="borrowed" x="25%" width="25%"' in page
    assert re.search(r'field-waits"><a href="[^"]*state__exact=waiting[^"]*">2</a>', page)


def test_pools_tell_why_nodes_are_out(cast: Cast, admin: Client) -> None:
    Node.objects.filter(name="gpu-1").update(ready=False)
    assert "1 of 2: 1 node is not ready." in text_of(admin.get("/admin/quotas/pool/"))


def test_a_run_on_several_nodes_is_found_by_each_and_shows_all_of_them(cast: Cast, admin: Client) -> None:
    workspace = make_workspace(cast, cast.carol, name="wide")
    make_workspace(cast, cast.alice, name="elsewhere")
    Claim.objects.filter(holder_id=workspace.pk).update(members=2, nodes=["gpu-1", "gpu-2"])
    page = text_of(admin.get(f"{CLAIMS}?q=gpu-2"))
    assert "wide" in page and "2 × 1" in page and "gpu-1, gpu-2" in page
    assert "elsewhere" not in page
