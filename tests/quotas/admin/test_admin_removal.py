"""A pool that somebody begins to use while an admin deletes it stays."""

from __future__ import annotations

import pytest
from django.test import Client

from quotas.models import Claim, Pool
from tests.admin_forms import text_of
from tests.shared.concurrency import whenever_deleting
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_pool_that_somebody_asks_for_at_that_moment_is_kept(stage: Stage) -> None:
    unused, client = stage.cpu_pool(), Client()
    client.force_login(stage.cast.admin.user)
    with whenever_deleting("quotas_pool", lambda: stage.request(0, pool=unused)):
        page = client.post(f"/admin/quotas/pool/{unused.pk}/delete/", {"post": "yes"}, follow=True)
    assert "it came into use a moment ago" in text_of(page)
    assert Claim.objects.get().pool == Pool.objects.get(slug="cpu")
