"""Admin pages of quotas: every page opens, and claims are ended only if their pod is lost."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from quotas import admission
from quotas.models import TenantLimit
from tests.admin_forms import confirm, preview, text_of
from tests.shared.clients import browser
from tests.shared.stage import Stage, again

CLAIMS = "/admin/quotas/claim/"
EDITED = ["pool", "flavor", "quota", "tenantlimit"]

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [*EDITED, "claim"])
def test_every_list_opens_and_can_be_searched(stage: Stage, admin: Client, model: str) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo)
    stage.running()
    page = admin.get(reverse(f"admin:quotas_{model}_changelist"), {"q": "demo"})
    assert page.status_code == 200


@pytest.mark.parametrize("model", EDITED)
def test_every_form_opens(stage: Stage, admin: Client, model: str) -> None:
    assert admin.get(reverse(f"admin:quotas_{model}_add")).status_code == 200


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
    client = browser(stage.cast.alice)
    assert client.get(reverse("admin:quotas_quota_changelist")).status_code == 302
    form = {"action": "confirm_end", "_selected_action": [str(lost.pk)], "confirmed": "yes"}
    assert client.post(CLAIMS, form).status_code == 302
    assert again(lost).state == "admitted"
