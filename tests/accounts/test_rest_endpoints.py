import json
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from accounts.credentials import tickets, tokens
from accounts.models import Membership, Role, Tenant
from tests.accounts.people import People
from tests.cast import KEY
from tests.shared.clients import api, ask, browser


def test_me_tells_who_one_is_and_where(people: People) -> None:
    assert ask(api(people.alice), "GET", "me/").json() == {
        "username": "alice",
        "email": "",
        "is_admin": False,
        "service_account": False,
        "language": "en",
        "time_zone": None,
        "theme": "",
        "tenants": [{"slug": "demo", "name": "Demo", "role": "owner"}],
    }
    of_admin = ask(api(people.admin), "GET", "me/").json()
    assert of_admin["is_admin"] is True
    assert [tenant["slug"] for tenant in of_admin["tenants"]] == ["demo", "second"]


def test_me_needs_three_queries_and_tells_the_language(
    people: People, django_assert_num_queries: Any
) -> None:
    script = api(people.bob)
    for number in range(5):
        tenant = Tenant.objects.create(slug=f"t{number}", name="T")
        Membership.objects.create(tenant=tenant, user=people.bob.user, role=Role.VIEWER)
    ask(script, "GET", "me/")
    with django_assert_num_queries(3):  # the request's token, its rate, tenants with roles
        assert len(ask(script, "GET", "me/").json()["tenants"]) == 6
    asked = ask(script, "GET", "me/", **{"Accept-Language": "ko"})
    assert asked.json()["language"] == "ko"
    people.bob.user.language, people.bob.user.time_zone = "zh-hans", "Asia/Shanghai"
    people.bob.user.save()
    of_bob = ask(script, "GET", "me/").json()
    assert (of_bob["language"], of_bob["time_zone"]) == ("zh-hans", "Asia/Shanghai")


def test_members_are_filtered_by_role(people: People) -> None:
    script = api(people.alice)
    viewers = ask(script, "GET", "tenants/demo/members/?role=viewer").json()["results"]
    assert [(row["username"], row["role"], row["is_active"]) for row in viewers] == [
        ("victor", "viewer", True)
    ]
    assert ask(script, "GET", "tenants/demo/members/?role=king").status_code == 400


def test_a_member_is_let_in_by_e_mail_too(people: People) -> None:
    people.carol.user.email = "carol@example.org"
    people.carol.user.save()
    answer = ask(api(people.alice), "POST", "tenants/demo/members/", {"username": "carol@example.org"})
    assert (answer.status_code, answer.json()["username"]) == (201, "carol")


def test_an_ssh_key_is_added_listed_and_removed(people: People) -> None:
    script = api(people.bob)
    added = ask(script, "POST", "ssh-keys/", {"name": "laptop", "public_key": KEY})
    assert added.status_code == 201
    assert added.json()["fingerprint"].startswith("SHA256:")
    assert added.json()["public_key"] == KEY.rsplit(" ", 1)[0]
    assert ask(script, "GET", "ssh-keys/").json() == {"results": [added.json()], "next": None}
    assert ask(script, "POST", "ssh-keys/", {"name": "again", "public_key": KEY}).status_code == 409
    assert ask(script, "DELETE", f"ssh-keys/{added.json()['id']}/").status_code == 204
    assert ask(script, "GET", "ssh-keys/").json()["results"] == []


def test_a_token_shows_its_secret_once(people: People) -> None:
    script = api(people.bob)
    made = ask(
        script, "POST", "tokens/", {"name": "nightly", "scopes": ["read"], "tenant": "demo", "days": 5}
    )
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    assert tokens.authenticate(made.json()["secret"]).tenant == people.demo
    listed = ask(script, "GET", "tokens/")
    assert made.json()["secret"] not in listed.text
    assert {token["name"] for token in listed.json()["results"]} == {"script", "nightly"}
    assert ask(script, "DELETE", f"tokens/{made.json()['id']}/").status_code == 204
    assert ask(script, "DELETE", f"tokens/{made.json()['id']}/").status_code == 404


def test_a_ticket_is_made_even_by_a_token_that_only_reads(people: People) -> None:
    answer = ask(api(people.bob, "read"), "POST", "ws-tickets/")
    assert answer.status_code == 201
    assert set(answer.json()) == {"ticket", "expires_at"}
    assert tickets.redeem(answer.json()["ticket"]).user == people.bob.user


def test_only_admins_make_tenants(people: People) -> None:
    body = {"slug": "vision", "name": "Vision"}
    assert ask(api(people.alice), "POST", "tenants/", body).status_code == 403
    assert ask(browser(people.alice), "POST", "tenants/", body).status_code == 403
    assert ask(api(people.admin), "POST", "tenants/", body).status_code == 201
    assert ask(api(people.admin), "POST", "tenants/", body).status_code == 409
    assert ask(api(people.admin), "POST", "tenants/", body | {"slug": "kube-system"}).status_code == 422


def test_the_trail_is_filtered(people: People) -> None:
    script = api(people.admin)
    ask(script, "DELETE", "tenants/demo/members/bob/")
    entries = ask(script, "GET", "audit/?action=member.remove&tenant=demo&outcome=done").json()["results"]
    assert [(entry["actor"], entry["target_kind"]) for entry in entries] == [("admin", "user")]
    assert ask(script, "GET", "audit/?outcome=perhaps").status_code == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "not_json"),
        ("[]", "invalid"),
        ("null", "invalid"),
        ('"text"', "invalid"),
        ("\xff", "not_json"),
        ("[" * 100_000, "invalid"),
        ('{"name": NaN}', "not_json"),
        ('{"name": "a\\u0000b", "public_key": "x"}', "invalid"),
        ('{"name": {"a": 1}, "public_key": []}', "invalid"),
        ('{"name": "\\ud800", "public_key": "x"}', "invalid"),
    ],
)
def test_bodies_that_cannot_be_read_are_400_in_our_form(people: People, body: str, code: str) -> None:
    data: Any = body.encode("latin-1")
    answer = api(people.bob).generic("POST", "/api/v1/ssh-keys/", data, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_unknown_fields_are_refused_by_name(people: People) -> None:
    body = {"name": "x", "scopes": ["read"], "scope": "read", "user": "alice"}
    answer = ask(api(people.bob), "POST", "tokens/", body)
    assert answer.status_code == 400
    assert set(answer.json()["error"]["fields"]) == {"scope", "user"}
    assert ask(api(people.bob), "POST", "ws-tickets/", {"user": "alice"}).status_code == 400


def test_errors_deep_in_a_body_are_named_by_their_path(people: People) -> None:
    answer = ask(api(people.bob), "POST", "tokens/", {"name": "x", "scopes": ["read", "all"]})
    assert list(answer.json()["error"]["fields"]) == ["scopes.1"]


def test_another_content_type_is_415_and_another_method_405(people: People) -> None:
    script = api(people.bob)
    form = script.generic(
        "POST", "/api/v1/ssh-keys/", "name=x", content_type="application/x-www-form-urlencoded"
    )
    assert (form.status_code, form.json()["error"]["code"]) == (415, "unsupported_media_type")
    put = script.generic("PUT", "/api/v1/ssh-keys/", "{}", content_type="application/json")
    assert (put.status_code, put.json()["error"]["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    "path", ["tenants/demo/members/a%00b/", "ssh-keys/1/", "tenants/%00/members/", "%ff/"]
)
def test_addresses_that_nothing_can_have_are_404(people: People, path: str) -> None:
    answer = api(people.alice).generic("DELETE", f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_a_session_writes_only_with_the_csrf_token(people: People) -> None:
    session = browser(people.bob, checks_csrf=True)
    body = json.dumps({"name": "laptop", "public_key": KEY})
    refused = session.post("/api/v1/ssh-keys/", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")
    session.get("/profile/")
    headers = {"X-CSRFToken": session.cookies["berth_csrf"].value}
    done = session.post("/api/v1/ssh-keys/", body, content_type="application/json", headers=headers)
    assert done.status_code == 201


def test_our_own_faults_are_json_with_a_number(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("accounts.rest.views.roles_of", break_down)
    answer = ask(api(people.bob, raise_errors=False), "GET", "me/")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert answer["X-Request-ID"] in answer.json()["error"]["hint"]
    assert "boom" not in answer.text


@pytest.mark.parametrize(
    "place", ["accounts.credentials.tokens.authenticate", "accounts.rest.permissions.actor_of"]
)
def test_a_database_outage_is_503(people: People, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("connection to server at 10.0.0.1 failed: password=hunter2")

    script = api(people.bob)
    monkeypatch.setattr(place, away)
    for method, headers in (("GET", {}), ("POST", {}), ("POST", {"Idempotency-Key": "key"})):
        answer = ask(script, method, "me/" if method == "GET" else "ssh-keys/", {}, **headers)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert answer.json()["error"]["code"] == "database_away"
        assert "hunter2" not in answer.text


def test_lists_need_a_fixed_number_of_queries(people: People, django_assert_num_queries: Any) -> None:
    script = api(people.alice)
    ask(script, "GET", "tokens/")
    with django_assert_num_queries(3):  # the request's token, its rate, the list
        ask(script, "GET", "tokens/")
    for number in range(5):
        tokens.issue(people.alice.user, str(number), ["read"], people.demo)
    with django_assert_num_queries(3):
        assert len(ask(script, "GET", "tokens/").json()["results"]) == 6


def test_outside_of_the_api_errors_stay_pages() -> None:
    assert Client().get("/api/nothing/")["Content-Type"] == "application/json"
    assert Client().get("/nothing/")["Content-Type"].startswith("text/html")


def test_a_moment_of_the_trail_may_have_any_offset_that_python_reads(people: People) -> None:
    script = api(people.alice)
    assert ask(script, "GET", "audit/?since=0739-04-01T17:21:32%2B17:15").status_code == 200
    assert ask(script, "GET", "audit/?since=2999-01-01T00:00:00-23:59").json()["results"] == []


def test_of_many_faulty_fields_twenty_are_named(people: People) -> None:
    body = {f"field{number}": 1 for number in range(5_000)}
    answer = ask(api(people.bob), "POST", "ssh-keys/", body)
    assert (answer.status_code, len(answer.json()["error"]["fields"])) == (400, 20)
