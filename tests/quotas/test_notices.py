"""Notices of changed quotas and limits, and who gets them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts import members
from accounts.access import Actor
from accounts.models import Membership, Role
from accounts.notices import inbox
from accounts.notices.models import Notice
from quotas import notices
from quotas.models import Quota, TenantLimit
from tests.cast import Cast, make_cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


def change(cast: Cast, by: Actor, before: int, after: int) -> None:
    quota = Quota.objects.get(tenant=cast.demo, pool=cast.pool)
    notices.share_changed(
        by.user, quota, {"before": {"nominal_gpus": before}, "after": {"nominal_gpus": after}}
    )


def read_by(actor: Actor) -> list[str]:
    return [f"{words.title}. {words.text}" for _notice, words in inbox.page(actor.user)[0]]


def test_owners_and_people_with_waiting_requests_are_notified(cast: Cast) -> None:
    make_workspace(cast, cast.bob, Phase.WAITING)
    change(cast, cast.admin, 4, 6)
    text = "Demo may now use 6 GPUs of A100. An admin changed it: it was 4 before."
    assert [read_by(actor) for actor in (cast.alice, cast.bob)] == [[text], [text]]
    assert [read_by(actor) for actor in (cast.victor, cast.carol, cast.admin)] == [[], [], []]


def test_a_change_in_the_admin_notifies(cast: Cast) -> None:
    quota = Quota.objects.get(tenant=cast.demo, pool=cast.pool)
    client = Client()
    client.force_login(cast.admin.user)
    form = {
        "tenant": quota.tenant_id,
        "pool": quota.pool_id,
        "nominal_gpus": 7,
        "borrowing_limit_gpus": 0,
        "weight": 1,
    }
    client.post(reverse("admin:quotas_quota_change", args=[quota.pk]), form)
    limits = {"tenant": cast.demo.pk, "cpu_millicores": 8}
    client.post(reverse("admin:quotas_tenantlimit_add"), limits)
    assert read_by(cast.alice) == [
        "The limits of Demo were changed. CPU: 8 at most; there was no limit before.",
        "Demo may now use 7 GPUs of A100. An admin changed it: it was 4 before.",
    ]


def test_the_person_who_made_the_change_is_not_notified(cast: Cast) -> None:
    Membership.objects.create(tenant=cast.demo, user=cast.admin.user, role=Role.OWNER)
    change(cast, cast.admin, 4, 6)
    assert read_by(cast.admin) == []


def test_an_unchanged_quota_notifies_nobody(cast: Cast) -> None:
    change(cast, cast.admin, 4, 4)
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    ("limit", "before", "after", "words"),
    [
        ("workspaces", None, 8, "Workspaces at once: 8 at most; there was no limit before."),
        ("memory_mib", 65_536, 131_072, "Memory: 128 GiB at most, before 64 GiB."),
        ("cpu_millicores", 8500, None, "CPU: no limit now."),
    ],
)
def test_changed_limits_notify(cast: Cast, limit: str, before: Any, after: Any, words: str) -> None:
    row = TenantLimit.objects.create(tenant=cast.demo, **{limit: after})
    notices.share_changed(cast.admin.user, row, {"before": {limit: before}, "after": {limit: after}})
    assert read_by(cast.alice) == [f"The limits of Demo were changed. {words}"]


def test_notices_disappear_for_people_who_left_the_tenant(cast: Cast) -> None:
    make_workspace(cast, cast.bob, Phase.WAITING)
    change(cast, cast.admin, 4, 6)
    members.remove(cast.alice, cast.demo, "bob")
    assert read_by(cast.bob) == []
