"""Endpoints of accounts, requested by everybody."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from accounts.credentials import ssh_keys, tokens
from accounts.models import AuditEntry, Membership, Scope
from tests.accounts.people import People
from tests.cast import KEY
from tests.shared.clients import api, ask, browser

NOBODYS = "00000000-0000-4000-8000-000000000000"  # test ids must be the same in every process
ENDPOINTS = [
    ("GET", "me/"),
    ("GET", "ssh-keys/"),
    ("POST", "ssh-keys/"),
    ("DELETE", f"ssh-keys/{NOBODYS}/"),
    ("GET", "tokens/"),
    ("POST", "tokens/"),
    ("DELETE", f"tokens/{NOBODYS}/"),
    ("GET", "tenants/"),
    ("POST", "tenants/"),
    ("GET", "tenants/demo/members/"),
    ("POST", "tenants/demo/members/"),
    ("PATCH", "tenants/demo/members/bob/"),
    ("DELETE", "tenants/demo/members/bob/"),
    ("POST", "ws-tickets/"),
    ("GET", "audit/"),
    ("GET", "jobs/"),
    ("POST", "jobs/"),
]
MEMBERS = [endpoint for endpoint in ENDPOINTS if "members" in endpoint[1]]
WRITES = [endpoint for endpoint in ENDPOINTS if endpoint[0] != "GET" and endpoint[1] != "ws-tickets/"]


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_who_is_not_signed_in_gets_401_everywhere(people: People, method: str, path: str) -> None:
    for client in (
        Client(),
        Client(headers={"Authorization": "Bearer brt_x_y"}),
        Client(headers={"Authorization": "Basic eDp5"}),
    ):
        answer = ask(client, method, path)
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"
        assert set(answer.json()["error"]) == {"code", "message", "hint", "fields"}


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_read_token_gets_403_on_every_write(people: People, method: str, path: str) -> None:
    for actor in (people.alice, people.admin):
        answer = ask(api(actor, Scope.READ), method, path)
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] in ("scope_missing", "admins_only")


@pytest.mark.parametrize(("method", "path"), MEMBERS)
def test_a_stranger_gets_the_bytes_of_what_does_not_exist(people: People, method: str, path: str) -> None:
    script = api(people.carol)
    foreign = ask(script, method, path, {"username": "bob", "role": "owner"})
    missing = ask(script, method, path.replace("demo", "nothing"), {"username": "bob", "role": "owner"})
    nowhere = ask(script, "GET", "no/such/address/")
    assert foreign.status_code == missing.status_code == nowhere.status_code == 404
    assert foreign.content == missing.content == nowhere.content


@pytest.mark.parametrize("name", ["bob", "victor"])
def test_members_and_viewers_see_who_is_in_but_change_nobody(people: People, name: str) -> None:
    script = api(getattr(people, name))
    answer = ask(script, "GET", "tenants/demo/members/")
    assert [(m["username"], m["role"]) for m in answer.json()["results"]] == [
        ("alice", "owner"),
        ("bob", "member"),
        ("victor", "viewer"),
    ]
    for method, path in (("POST", ""), ("PATCH", "victor/"), ("DELETE", "victor/")):
        body = {"role": "owner"} | ({"username": "victor"} if method == "POST" else {})
        assert ask(script, method, f"tenants/demo/members/{path}", body).status_code == 403
    assert Membership.objects.filter(role="owner").count() == 1


@pytest.mark.parametrize("name", ["alice", "admin"])
def test_owners_and_admins_change_members(people: People, name: str) -> None:
    script = api(getattr(people, name))
    added = ask(script, "POST", "tenants/demo/members/", {"username": "carol"})
    assert (added.status_code, added.json()["role"]) == (201, "member")
    changed = ask(script, "PATCH", "tenants/demo/members/carol/", {"role": "viewer"})
    assert (changed.status_code, changed.json()["role"]) == (200, "viewer")
    assert ask(script, "DELETE", "tenants/demo/members/carol/").status_code == 204
    assert ask(script, "PATCH", "tenants/demo/members/carol/", {"role": "viewer"}).status_code == 404


def test_a_token_bound_to_another_tenant_sees_nothing_of_this_one(people: People) -> None:
    Membership.objects.create(tenant=people.second, user=people.alice.user)
    script = api(people.alice, tenant=people.second)
    assert ask(script, "GET", "tenants/demo/members/").status_code == 404
    assert [tenant["slug"] for tenant in ask(script, "GET", "tenants/").json()["results"]] == ["second"]
    assert [tenant["slug"] for tenant in ask(script, "GET", "me/").json()["tenants"]] == ["second"]
    assert ask(script, "GET", "audit/").status_code == 403


def test_keys_and_tokens_of_others_do_not_exist(people: People) -> None:
    key = ssh_keys.add(people.alice, "laptop", KEY)
    token, _secret = tokens.issue(people.alice.user, "laptop", ["read"])
    for actor in (people.bob, people.admin):
        script = api(actor)
        assert ask(script, "GET", "ssh-keys/").json()["results"] == []
        assert len(ask(script, "GET", "tokens/").json()["results"]) == 1
        for path in (f"ssh-keys/{key.pk}/", f"tokens/{token.pk}/"):
            answer = ask(script, "DELETE", path)
            assert answer.status_code == 404
            assert answer.content == ask(script, "DELETE", f"tokens/{uuid4()}/").content


def test_the_trail_is_for_owners_of_the_tenant_and_admins(people: People) -> None:
    ask(api(people.alice), "PATCH", "tenants/demo/members/bob/", {"role": "viewer"})
    AuditEntry.objects.create(action="elsewhere", tenant=people.second)
    of_owner = ask(api(people.alice), "GET", "audit/").json()["results"]
    assert {entry["tenant"] for entry in of_owner} == {"demo"}
    assert "member.change" in {entry["action"] for entry in of_owner}
    of_admin = ask(api(people.admin), "GET", "audit/").json()["results"]
    assert {"elsewhere", "member.change"} <= {entry["action"] for entry in of_admin}
    for actor in (people.bob, people.victor, people.carol):
        assert ask(api(actor), "GET", "audit/").status_code == 403


def test_who_is_taken_out_or_deactivated_is_out_at_once(people: People) -> None:
    script, session = api(people.bob), browser(people.bob)
    assert ask(script, "GET", "tenants/demo/members/").status_code == 200
    ask(api(people.alice), "DELETE", "tenants/demo/members/bob/")
    assert ask(script, "GET", "tenants/demo/members/").status_code == 404
    assert ask(session, "GET", "tenants/demo/members/").status_code == 404
    people.bob.user.is_active = False
    people.bob.user.save()
    assert ask(script, "GET", "me/").status_code == 401
    assert ask(session, "GET", "me/").status_code == 401


def test_refused_changes_are_in_the_trail_with_who_and_what(people: People) -> None:
    ask(api(people.bob), "DELETE", "tenants/demo/members/victor/")
    entry = AuditEntry.objects.get(outcome="refused")
    assert (entry.actor_name, entry.action, entry.address) == ("bob", "member.delete", "127.0.0.1")
    assert entry.data["code"] == "owners_only"
    assert entry.data["path"] == "/api/v1/tenants/demo/members/victor/"
