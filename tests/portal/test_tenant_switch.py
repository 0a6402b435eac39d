"""The choice of a tenant in the frame: it narrows what pages show, and never reaches further than the person may."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory

from accounts.access import Actor
from accounts.models import Membership
from accounts.tenancy import current_tenant
from tests.cast import Cast, make_cast
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Cast:
    cast = make_cast()
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role="member")
    return cast


def chosen(client: Client, actor: Actor) -> str | None:
    """Return the tenant that the next page of this browser would show."""
    request = RequestFactory().get("/")
    request.session, request.user = client.session, actor.user
    tenant = current_tenant(request)
    return tenant.slug if tenant else None


def test_nothing_chosen_means_all_of_theirs(cast: Cast) -> None:
    assert chosen(browser(cast.bob), cast.bob) is None


def test_a_choice_holds_until_another_one(cast: Cast) -> None:
    client = browser(cast.bob)
    for slug, kept in (("second", "second"), ("demo", "demo"), ("", None)):
        client.post("/tenant/", {"tenant": slug})
        assert chosen(client, cast.bob) == kept


def test_it_leads_back_to_the_page_where_it_was_made_and_to_no_other_site(cast: Cast) -> None:
    client = browser(cast.bob)
    for target, led_to in (("/launch/", "/launch/"), ("https://evil.example/", "/"), ("//evil.example", "/")):
        assert client.post("/tenant/", {"tenant": "demo", "next": target})["Location"] == led_to


def test_a_foreign_tenant_is_as_one_that_is_not_there(cast: Cast) -> None:
    client = browser(cast.alice)
    answers = [client.post("/tenant/", {"tenant": slug}) for slug in ("second", "nothing", "\0")]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert chosen(client, cast.alice) is None


def test_who_leaves_the_chosen_tenant_sees_the_rest(cast: Cast) -> None:
    client = browser(cast.bob)
    client.post("/tenant/", {"tenant": "second"})
    cast.bob.user.memberships.filter(tenant=cast.second).delete()
    assert chosen(client, cast.bob) is None


def test_the_trail_stands_in_the_rail_of_who_may_read_it(cast: Cast) -> None:
    shown = {
        name: b'href="/audit/"' in browser(getattr(cast, name)).get("/gpus/").content
        for name in ("alice", "bob", "admin")
    }
    assert shown == {"alice": True, "bob": False, "admin": True}
