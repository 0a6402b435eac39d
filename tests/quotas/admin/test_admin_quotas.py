"""Quotas, limits and pools in the admin: raising starts claims, lowering stops nothing, both are recorded."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.models import AuditEntry, Tenant
from quotas import enqueue
from quotas.admission import admit
from quotas.models import Claim, Pool, Quota, TenantLimit
from tests.admin_forms import confirm, hidden, preview, text_of
from tests.shared.concurrency import whenever_deleting
from tests.shared.stage import Stage, again

pytestmark = pytest.mark.django_db

QUOTAS, POOLS = "/admin/quotas/quota/", "/admin/quotas/pool/"


@pytest.fixture
def working(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> AbstractContextManager[object]:
    """Run enqueued passes as an idle worker would, when the context ends."""
    monkeypatch.setattr(enqueue, "admission_pass", admit)
    return django_capture_on_commit_callbacks(execute=True)


def of_demo() -> Quota:
    return Quota.objects.get(tenant__slug="demo")


def form(quota: Quota, gpus: int, borrow: int = 0) -> dict[str, Any]:
    shares = {"nominal_gpus": gpus, "borrowing_limit_gpus": borrow, "weight": 1}
    return {"tenant": str(quota.tenant_id), "pool": str(quota.pool_id), **shares}


def change(client: Client, gpus: int, borrow: int = 0) -> Any:
    quota = of_demo()
    return client.post(f"{QUOTAS}{quota.pk}/change/", form(quota, gpus, borrow))


def change_in_list(client: Client, gpus: int) -> Any:
    rows = list(Quota.objects.order_by("pk"))
    fields: dict[str, Any] = {"form-TOTAL_FORMS": len(rows), "form-INITIAL_FORMS": len(rows), "_save": "Save"}
    for number, quota in enumerate(rows):
        wanted = gpus if quota == of_demo() else quota.nominal_gpus
        fields[f"form-{number}-id"] = quota.pk
        fields |= {f"form-{number}-nominal_gpus": wanted, f"form-{number}-borrowing_limit_gpus": 0}
        fields[f"form-{number}-weight"] = quota.weight
    return client.post(QUOTAS, fields)


@pytest.mark.parametrize("way", [change, change_in_list])
def test_raising_a_quota_starts_waiting_requests(
    stage: Stage, admin: Client, working: AbstractContextManager[object], way: Any
) -> None:
    stage.running(4)
    waiting = stage.request(2)
    stage.admit()
    assert again(waiting).state == "waiting"
    with working:
        assert way(admin, 6).status_code == 302
    assert again(waiting).state == "admitted"


@pytest.mark.parametrize("way", [change, change_in_list])
def test_lowering_below_use_says_who_is_over_and_stops_nothing(stage: Stage, admin: Client, way: Any) -> None:
    running = stage.running(3)
    page = way(admin, 1)
    assert "It uses 3 GPUs; its new limit is 1." in text_of(page)
    assert "Used by: alice 3." in text_of(page)
    assert "changed successfully" not in text_of(page)
    assert of_demo().nominal_gpus == 4
    assert not AuditEntry.objects.filter(action="quota.change").exists()
    assert admin.post(page.request["PATH_INFO"], hidden(page)).status_code == 302
    assert of_demo().nominal_gpus == 1
    assert again(running).state == "admitted"
    assert "3 of 1" in text_of(admin.get(QUOTAS))


def test_what_started_since_the_look_is_shown_before_the_quota_is_lowered(
    stage: Stage, admin: Client
) -> None:
    stage.running(2)
    page = change(admin, 1)
    stage.running(1)
    once_more = admin.post(page.request["PATH_INFO"], hidden(page))
    assert "Something changed since you opened this page. Nothing was saved." in text_of(once_more)
    assert of_demo().nominal_gpus == 4


def test_the_page_of_one_room_leaves_the_overview_to_the_first_page(admin: Client) -> None:
    assert "Needs attention" in text_of(admin.get("/admin/"))
    assert "Needs attention" not in text_of(admin.get("/admin/quotas/"))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("quota_full", "Waits for a limit of its own tenant."),
        ("behind_larger", "Earlier requests are ahead of it."),
        ("no_free_gpus", "There is not enough room for it yet."),
        ("pool_closed", "This pool is out of use."),
    ],
)
def test_the_overview_says_why_others_wait_and_not_to_them(
    stage: Stage, admin: Client, code: str, said: str
) -> None:
    claim = stage.request()
    data = {"used_gpus": 4, "limit_gpus": 4, "free_gpus": 0, "gpus": 1}
    Claim.objects.filter(pk=claim.pk).update(reason_code=code, reason_data=data)
    waits = text_of(admin.get("/admin/")).split("Waiting longest")[1].split("</section>")[0]
    assert said in waits
    assert not re.search(r"\byou", waits, re.IGNORECASE)


def test_a_list_offers_all_of_it_only_where_some_is_left_out(admin: Client) -> None:
    assert "Show all" not in text_of(admin.get(QUOTAS))
    assert ">Show all</a>" in text_of(admin.get(f"{QUOTAS}?q=demo"))


def test_lowering_within_what_is_free_asks_nothing(stage: Stage, admin: Client) -> None:
    stage.running(2)
    assert change(admin, 2).status_code == 302
    assert of_demo().nominal_gpus == 2


def test_taking_a_quota_away_below_use_asks_first(stage: Stage, admin: Client) -> None:
    stage.running(1)
    page = admin.post(f"{QUOTAS}{of_demo().pk}/delete/", {"post": "yes"})
    assert "new limit is 0" in text_of(page)
    admin.post(page.request["PATH_INFO"], hidden(page))
    assert not Quota.objects.filter(tenant__slug="demo").exists()


def test_a_limit_over_all_pools_asks_as_well(stage: Stage, admin: Client) -> None:
    limit = TenantLimit.objects.create(tenant=stage.cast.demo)
    stage.running()
    stage.running()
    path = f"/admin/quotas/tenantlimit/{limit.pk}/change/"
    page = admin.post(path, {"tenant": str(limit.tenant_id), "workspaces": 1})
    assert "It runs 2 workspaces; its new limit is 1 at once." in text_of(page)
    admin.post(path, hidden(page))
    limit.refresh_from_db()
    assert limit.workspaces == 1


def test_values_before_and_after_are_on_record_and_in_the_history(stage: Stage, admin: Client) -> None:
    change(admin, 6)
    entry = AuditEntry.objects.get(action="quota.change")
    assert (entry.actor_name, entry.tenant) == ("admin", stage.cast.demo)
    assert (entry.data["before"], entry.data["after"]) == ({"nominal_gpus": 4}, {"nominal_gpus": 6})
    history = text_of(admin.get(f"{QUOTAS}{of_demo().pk}/history/"))
    assert '<span class="muted">4</span> → 6' in history
    assert "admin changed the quota" in history
    assert "quota.change" in text_of(admin.get(f"/admin/accounts/tenant/{stage.cast.demo.pk}/history/"))


@pytest.mark.parametrize(("gpus", "borrow"), [(-1, 0), (4, -1), (0, 2), ("many", 0), (2**40, 0)])
def test_what_cannot_be_a_quota_is_told_beside_its_field(
    stage: Stage, admin: Client, gpus: Any, borrow: int
) -> None:
    page = change(admin, gpus, borrow)
    assert page.status_code == 200
    assert "errorlist" in text_of(page)
    assert of_demo().nominal_gpus == 4


def test_more_than_the_pool_has_is_saved_with_a_warning(stage: Stage, admin: Client) -> None:
    quota = of_demo()
    page = admin.post(f"{QUOTAS}{quota.pk}/change/", form(quota, 20), follow=True)
    assert "Demo can use 20 GPUs of A100, but the pool has only 8" in text_of(page)
    assert of_demo().nominal_gpus == 20


class TestPools:
    def test_out_of_use_nothing_new_starts_and_what_runs_goes_on(self, stage: Stage, admin: Client) -> None:
        running = stage.running(1)
        waiting = stage.request(4)
        page = preview(admin, POOLS, "close", stage.pool)
        assert "1 running workspace is not affected (alice)." in text_of(page)
        assert "1 request keeps waiting until the pool is in use again (alice)." in text_of(page)
        assert "1 pool is out of use." in text_of(confirm(admin, POOLS, page))
        stage.admit()
        assert (again(running).state, again(waiting).state) == ("admitted", "waiting")
        assert again(waiting).reason_code == "pool_closed"
        stage.pool.refresh_from_db()
        with pytest.raises(Exception, match="out of use"):
            stage.request(1, by=stage.cast.carol)
        assert AuditEntry.objects.filter(action="pool.close").exists()

    def test_back_in_use_waiting_requests_start(
        self, stage: Stage, admin: Client, working: AbstractContextManager[object]
    ) -> None:
        waiting = stage.request(4)
        Pool.objects.update(is_open=False)
        stage.admit()
        page = preview(admin, POOLS, "open", Pool.objects.get())
        with working:
            confirm(admin, POOLS, page)
        assert again(waiting).state == "admitted"

    def test_a_pool_in_which_something_runs_or_ran_is_kept(self, stage: Stage, admin: Client) -> None:
        claim = stage.running()
        path = f"{POOLS}{stage.pool.pk}/delete/"
        assert "1 workspace or job runs or waits there." in text_of(admin.get(path))
        Claim.objects.filter(pk=claim.pk).update(state="released", released_at=claim.created_at)
        assert "Its history is kept on record." in text_of(admin.post(path, {"post": "yes"}))
        assert Pool.objects.filter(pk=stage.pool.pk).exists()

    def test_a_pool_that_nobody_used_goes_with_its_quotas_and_sizes(
        self, stage: Stage, admin: Client
    ) -> None:
        admin.post(f"{POOLS}{stage.pool.pk}/delete/", {"post": "yes"})
        assert not Pool.objects.exists()
        assert AuditEntry.objects.get(action="pool.delete").data["name"] == "A100"


@pytest.mark.django_db(transaction=True)
def test_a_pool_that_somebody_requests_while_it_is_deleted_is_kept(stage: Stage, admin: Client) -> None:
    unused = stage.cpu_pool()
    with whenever_deleting("quotas_pool", lambda: stage.request(0, pool=unused)):
        page = admin.post(f"{POOLS}{unused.pk}/delete/", {"post": "yes"}, follow=True)
    assert "it came into use a moment ago" in text_of(page)
    assert Claim.objects.get().pool == Pool.objects.get(slug="cpu")


def test_lists_ask_the_database_as_often_for_twelve_rows_as_for_two(stage: Stage, admin: Client) -> None:
    paths = [QUOTAS, POOLS, "/admin/quotas/tenantlimit/", "/admin/quotas/claim/", "/admin/accounts/tenant/"]

    def grow(count: int) -> None:
        for number in range(count):
            tenant = Tenant.objects.create(slug=f"t{Tenant.objects.count()}", name=f"Team {number}")
            TenantLimit.objects.create(tenant=tenant, cpu_millicores=4000, workspaces=3)
            pool = stage.another_pool(f"p{Pool.objects.count()}")
            Quota.objects.create(tenant=tenant, pool=pool, nominal_gpus=2)
            stage.request(1, tenant=tenant, pool=pool)

    grow(2)
    for path in paths:
        admin.get(path)
    few = {path: queries_of(admin, path) for path in paths}
    grow(10)
    assert {path: queries_of(admin, path) for path in paths} == few


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)
