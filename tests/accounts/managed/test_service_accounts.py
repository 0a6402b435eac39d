"""Service accounts: their tokens work as long as an owner of their tenant answers for them."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import tokens
from accounts.errors import Conflict, Invalid, NotAllowed, NotSignedIn
from accounts.models import APIToken, AuditEntry, Membership, Role, User
from accounts.notices import inbox
from accounts.notices.models import Notice
from accounts.service_accounts import changing
from accounts.signals import access_changed, send_access_changed
from accounts.trail.trail_words import sentence
from quotas.models import Claim
from tests.accounts.people import People, heard
from tests.cast import make_cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

EVERY = ["read", "workspaces", "jobs", "volumes"]


def made(people: People, role: str = "member") -> tuple[User, str]:
    account = changing.create(people.alice, tenant=people.demo.slug, name="nightly", role=role)
    return account, changing.create_token(people.alice, account, "ci", EVERY, 30)[1]


def works(secret: str) -> bool:
    try:
        tokens.authenticate(secret)
    except NotSignedIn:
        return False
    return True


def make_owner(people: People, actor: Actor) -> None:
    members.set_role(people.alice, people.demo, actor.user.username, "owner")


def leave(people: People) -> None:
    members.remove(people.alice, people.demo, "alice")


def become_member(people: People) -> None:
    members.set_role(people.alice, people.demo, "alice", "member")


def be_deactivated(people: People) -> None:
    members.set_active(people.admin, people.alice.user, active=False)


@pytest.mark.parametrize("end", [leave, become_member, be_deactivated])
def test_its_tokens_stop_with_their_owner_until_another_one_takes_it_over(people: People, end: Any) -> None:
    account, secret = made(people)
    make_owner(people, people.bob)
    assert works(secret)
    end(people)
    assert not works(secret)
    send_access_changed(people.alice.user)  # of whatever else changes for them
    [notice] = Notice.objects.filter(subject="service-account", user=people.bob.user)
    [(_notice, words)] = inbox.page(people.bob.user)[0][:1]
    assert (words.is_past, words.path) == (False, f"/tenants/demo/service-accounts/{account.pk}/")
    with pytest.raises(NotAllowed) as refusal:
        changing.create_token(people.bob, account, "ci", EVERY, 30)
    assert refusal.value.code == "not_responsible"
    assert changing.adopt(people.bob, changing.get(people.bob, account.pk))
    assert not works(secret)  # who left may still have it
    assert works(changing.create_token(people.bob, account, "ci", EVERY, 30)[1])
    assert not changing.adopt(people.bob, changing.get(people.bob, account.pk))
    assert AuditEntry.objects.get(action="service_account.adopt").data["before"] == "alice"
    [(again, words)] = inbox.page(people.bob.user)[0][:1]
    assert (again.pk, words.is_past) == (notice.pk, True)


def test_its_own_token_stops_what_it_opened_when_the_owner_leaves(people: People) -> None:
    """Rooms above end sockets and handed-out tokens of the people that this signal names."""
    account, _secret = made(people)
    make_owner(people, people.bob)
    with heard(access_changed) as names:
        leave(people)
    with heard(access_changed) as later:
        members.set_active(people.admin, people.alice.user, active=False)
    assert sorted(names) == ["alice", account.username]
    assert later == ["alice"]
    assert Notice.objects.filter(user=people.bob.user).count() == 1  # it had stopped before


def test_nobody_signs_in_as_it(people: People) -> None:
    account, _secret = made(people)
    assert authenticate(None, username=account.username, password=account.password) is None
    for change in ({"password": "pbkdf2$x"}, {"is_staff": True}, {"email": "svc@example.org"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            User.objects.filter(pk=account.pk).update(**change)
    client = Client()
    client.force_login(people.admin.user)
    assert client.get(f"/admin/accounts/user/{account.pk}/change/").status_code == 302
    assert client.get("/admin/accounts/serviceaccount/").status_code == 200


def test_its_tokens_stay_in_its_tenant_and_it_in_its_tenant(people: People) -> None:
    account, secret = made(people, role="owner")
    of_account = Actor(account, tokens.authenticate(secret))
    with pytest.raises(Invalid):
        tokens.issue(account, "wide", ["read"])
    with pytest.raises(Invalid):
        members.set_role(people.admin, people.second, account.username, "member")
    with pytest.raises(Conflict) as refusal:
        members.remove(people.alice, people.demo, account.username)
    assert refusal.value.code == "service_account"
    with pytest.raises(NotAllowed) as second:
        changing.create(of_account, tenant="demo", name="other", role="owner")
    assert second.value.code == "people_only"
    with pytest.raises(Conflict) as last:  # an account is no owner who could repair the tenant
        members.remove(people.alice, people.demo, "alice")
    assert last.value.code == "last_owner"


def test_a_token_gives_it_no_more_than_it_has_itself(people: People) -> None:
    account, _secret = made(people)
    narrow, _ = tokens.issue(people.alice.user, "narrow", ["workspaces"], None, 1)
    by_token = Actor(people.alice.user, narrow)
    with pytest.raises(NotAllowed):
        changing.create_token(by_token, account, "wider", ["jobs"], 30)
    token, _secret = changing.create_token(by_token, account, "same", ["workspaces"], 30)
    assert token.expires_at == narrow.expires_at


def test_a_deleted_one_is_gone_with_its_tokens(people: People) -> None:
    account, secret = made(people)
    changing.delete(people.alice, account)
    assert not works(secret)
    assert not User.objects.filter(pk=account.pk).exists()
    assert not APIToken.objects.filter(user=account.pk).exists()
    made(people)  # its name is free again


@pytest.mark.django_db
def test_one_that_still_runs_something_is_not_deleted() -> None:
    cast = make_cast()
    account = changing.create(cast.alice, tenant="demo", name="nightly", role="member")
    workspace = make_workspace(cast, Actor(account), Phase.WAITING)
    with pytest.raises(Conflict) as refusal:
        changing.delete(cast.alice, account)
    assert refusal.value.code == "service_account_busy"
    Claim.objects.filter(holder_id=workspace.pk).update(
        state=Claim.State.RELEASED, released_at=timezone.now()
    )
    changing.delete(cast.alice, account)
    assert not User.objects.get(pk=account.pk).is_active


def test_the_trail_says_which_account_acted_and_who_answers_for_it(people: People) -> None:
    account, secret = made(people, role="owner")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    answer = client.patch(
        "/api/v1/tenants/demo/members/bob/", {"role": "viewer"}, content_type="application/json"
    )
    assert answer.status_code == 200
    entry = AuditEntry.objects.get(action="member.change", actor=account)
    assert (entry.actor_name, entry.data["responsible"]) == ("svc.demo.nightly", "alice")
    assert "alice" in sentence(entry)


def test_an_owner_does_all_of_it_over_rest(people: People) -> None:
    _token, secret = tokens.issue(people.alice.user, "script", EVERY)
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    body = {"tenant": "demo", "name": "ci", "role": "viewer"}
    headers = {"Idempotency-Key": "once"}
    first, again = (
        client.post("/api/v1/service-accounts/", body, content_type="application/json", headers=headers)
        for _ in "12"
    )
    assert (first.status_code, first.json()) == (201, again.json())
    made_now = first.json()
    assert (made_now["username"], made_now["responsible"], made_now["works"], made_now["role"]) == (
        "svc.demo.ci",
        "alice",
        True,
        "viewer",
    )
    path = f"/api/v1/service-accounts/{made_now['id']}/"
    token = client.post(
        path + "tokens/", {"name": "ci", "scopes": ["read"]}, content_type="application/json"
    ).json()
    own = Client(headers={"Authorization": f"Bearer {token['secret']}"})
    me = own.get("/api/v1/me/").json()
    assert (me["username"], [tenant["slug"] for tenant in me["tenants"]]) == ("svc.demo.ci", ["demo"])
    assert [row["id"] for row in client.get("/api/v1/service-accounts/").json()["results"]] == [
        made_now["id"]
    ]
    listed = client.get("/api/v1/tenants/demo/members/").json()["results"]
    assert [row["username"] for row in listed if row["is_service_account"]] == ["svc.demo.ci"]
    assert client.delete(f"{path}tokens/{token['id']}/").status_code == 204
    assert own.get("/api/v1/me/").status_code == 401
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_an_owner_takes_it_over_on_the_page_of_the_tenant(people: People) -> None:
    account, secret = made(people)
    make_owner(people, people.bob)
    leave(people)
    client = Client()
    client.force_login(people.bob.user)
    address = f"/tenants/demo/service-accounts/{account.pk}/"
    assert f"{address}adopt/" in client.get("/tenants/demo/").content.decode()
    assert client.get(f"{address}adopt/").status_code == 200
    assert client.post(f"{address}adopt/").status_code == 302
    assert not works(secret)
    assert f"{address}adopt/" not in client.get("/tenants/demo/").content.decode()
    page = client.post(address, {"token-name": "x", "token-scopes": ["read"], "token-days": 3})
    assert page.status_code == 200
    assert "brt_" in page.content.decode()
    assert Membership.objects.filter(user=account, role=Role.MEMBER).exists()
