"""Addresses of the admin that none of our pages links to: never a server error."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client

from accounts.admin.recorded import Page
from tests.cast import make_cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(make_cast().admin.user)
    return client


@pytest.mark.parametrize(
    "address",
    [
        "workspaces/workspace/?created_at__year=99999999999999999999",
        "workspaces/workspace/?created_at__year=9999",
        "workspaces/workspace/?created_at__year=0&created_at__month=13",
        "workspaces/workspace/?tenant__id__exact=%00",
        "workspaces/workspace/?phase__exact=%00",
        "quotas/claim/?state=%00",
        "quotas/ledgerentry/?day__year=99999999999999999999",
        "quotas/claim/?state__exact=%00",
        "accounts/auditentry/?at__year=99999999999999999999",
        "accounts/user/?date_joined__year=2026&date_joined__month=2&date_joined__day=31",
    ],
)
def test_a_filter_that_cannot_be_leads_to_the_list_without_it(client: Client, address: str) -> None:
    page = f"/admin/{address}"
    answer = client.get(page)
    assert (answer.status_code, answer.headers.get("Location")) == (302, page.partition("?")[0] + "?e=1")


@pytest.mark.parametrize(
    "query", ["q=%00", "p=99999999999999999999", "o=99999999999999999999", "p=%00", "e=1", "all=%00"]
)
def test_what_is_no_filter_never_fails(client: Client, query: str) -> None:
    for name in ("quotas/claim", "workspaces/workspace", "accounts/user", "accounts/auditentry"):
        assert client.get(f"/admin/{name}/?{query}").status_code in (200, 302), name


def test_every_list_is_a_page_of_ours() -> None:
    assert [model for model, page in admin.site._registry.items() if not isinstance(page, Page)] == []
