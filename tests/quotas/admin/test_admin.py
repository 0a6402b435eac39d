"""Admin pages of quotas: every page opens, live use stands beside limits, changes are recorded and notified."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry
from quotas import admission
from quotas.models import Quota, TenantLimit
from tests.admin_forms import confirm, preview, text_of
from tests.shared.stage import Stage, again

CLAIMS = "/admin/quotas/claim/"
MODELS = ["pool", "flavor", "quota", "tenantlimit", "claim"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(stage: Stage) -> Client:
    client = Client()
    client.force_login(stage.cast.admin.user)
    return client


@pytest.mark.parametrize("model", MODELS)
def test_every_list_opens_and_can_be_searched(stage: Stage, admin: Client, model: str) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo)
    stage.running()
    page = admin.get(reverse(f"admin:quotas_{model}_changelist"), {"q": "demo"})
    assert page.status_code == 200


@pytest.mark.parametrize("model", ["pool", "flavor", "quota", "tenantlimit"])
def test_every_form_opens(stage: Stage, admin: Client, model: str) -> None:
    assert admin.get(reverse(f"admin:quotas_{model}_add")).status_code == 200


def test_what_is_used_stands_beside_the_quota(stage: Stage, admin: Client) -> None:
    stage.running(3)
    page = admin.get(reverse("admin:quotas_quota_changelist")).content.decode()
    assert '<span class="usage-words">3 of 4</span>' in page


def test_a_changed_quota_is_recorded_and_lets_those_start_who_waited(stage: Stage, admin: Client) -> None:
    stage.running(4)
    waiting = stage.request(2)
    stage.admit()
    quota = Quota.objects.get(tenant=stage.cast.demo)
    admin.post(
        reverse("admin:quotas_quota_change", args=[quota.pk]),
        {
            "tenant": quota.tenant_id,
            "pool": quota.pool_id,
            "nominal_gpus": 6,
            "borrowing_limit_gpus": 0,
            "weight": 1,
        },
    )
    [entry] = AuditEntry.objects.filter(action="quota.change")
    assert (entry.actor_name, entry.tenant, entry.data["fields"]) == (
        "admin",
        stage.cast.demo,
        ["nominal_gpus"],
    )
    stage.admit()
    assert again(waiting).state == "admitted"


def test_claims_are_only_looked_at(stage: Stage, admin: Client) -> None:
    claim = stage.running()
    assert admin.get(reverse("admin:quotas_claim_add")).status_code == 403
    assert (
        admin.post(reverse("admin:quotas_claim_delete", args=[claim.pk]), {"post": "yes"}).status_code == 403
    )
    admin.post(reverse("admin:quotas_claim_change", args=[claim.pk]), {"state": "released"})
    assert again(claim).state == "admitted"


def test_an_admin_ends_only_claims_whose_pod_was_lost_from_sight(stage: Stage, admin: Client) -> None:
    lost, seen = stage.running(), stage.running()
    admission.flag_unproven_end(lost.pk)
    page = preview(admin, CLAIMS, "confirm_end", lost, seen)
    assert "Its pod disappeared from gpu-" in text_of(page)
    assert "Its pod still exists" in text_of(page)
    assert again(lost).state == "admitted"
    assert "1 claim was ended." in text_of(confirm(admin, CLAIMS, page))
    assert (again(lost).state, again(seen).state) == ("released", "admitted")


def test_nobody_else_gets_in(stage: Stage) -> None:
    lost = stage.running()
    admission.flag_unproven_end(lost.pk)
    client = Client()
    client.force_login(stage.cast.alice.user)
    assert client.get(reverse("admin:quotas_quota_changelist")).status_code == 302
    form = {"action": "confirm_end", "_selected_action": [str(lost.pk)], "confirmed": "yes"}
    assert client.post(CLAIMS, form).status_code == 302
    assert again(lost).state == "admitted"
