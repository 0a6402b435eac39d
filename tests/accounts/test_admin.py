from typing import Any

import pytest

from accounts import signals
from accounts.access import Actor, role_in
from accounts.credentials import tokens
from accounts.models import APIToken, AuditEntry, Membership, User
from tests.accounts.people import People, heard
from tests.admin_forms import confirm, preview, text_of
from tests.shared.clients import browser


@pytest.mark.parametrize("model", ["user", "tenant", "sshkey", "apitoken", "auditentry"])
def test_lists_open_for_admins_alone(people: People, model: str) -> None:
    tokens.issue(people.alice.user, "laptop", ["read"])
    assert browser(people.admin).get(f"/admin/accounts/{model}/").status_code == 200
    assert browser(people.alice).get(f"/admin/accounts/{model}/").status_code == 302


def test_digests_of_tokens_are_not_shown(people: People) -> None:
    token, _secret = tokens.issue(people.alice.user, "laptop", ["read"])
    page = browser(people.admin).get(f"/admin/accounts/apitoken/{token.pk}/change/").text
    assert token.prefix in page
    assert token.digest not in page


def test_a_token_is_revoked_after_a_look_at_whose_it_is(people: People) -> None:
    token, _secret = tokens.issue(people.alice.user, "laptop", ["read"])
    client, path = browser(people.admin), "/admin/accounts/apitoken/"
    page = preview(client, path, "revoke", token)
    assert "“laptop” of alice" in text_of(page)
    assert APIToken.objects.get(pk=token.pk).revoked_at is None
    confirm(client, path, page)
    assert APIToken.objects.get(pk=token.pk).revoked_at is not None
    assert AuditEntry.objects.get(action="token.revoke").actor == people.admin.user


def test_who_is_no_longer_an_admin_is_told_to_what_they_have_open(people: People) -> None:
    person = people.admin.user
    boss = User.objects.create_user("boss", is_staff=True)
    form = {"username": person.username, "email": person.email, "is_active": "on", "language": "en"}
    form |= {"initial-is_active": "True", "initial-is_staff": "True"}
    parts = ("memberships", "workspaces", "jobs", "tokens", "ssh_keys")
    form |= {f"{part}-{count}_FORMS": "0" for part in parts for count in ("TOTAL", "INITIAL")}
    with heard(signals.access_changed) as told:
        answer = browser(Actor(boss)).post(f"/admin/accounts/user/{person.pk}/change/", form)
    assert answer.status_code == 302, answer.context["errors"]
    assert told == [person.username]


def test_the_trail_cannot_be_changed(people: People) -> None:
    entry = AuditEntry.objects.create(action="x")
    client = browser(people.admin)
    assert client.get(f"/admin/accounts/auditentry/{entry.pk}/change/").status_code == 200
    assert client.post(f"/admin/accounts/auditentry/{entry.pk}/change/", {"action": "y"}).status_code == 403
    assert client.post(f"/admin/accounts/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403


def test_deactivating_people_is_recorded_and_spares_oneself(people: People) -> None:
    client, path = browser(people.admin), "/admin/accounts/user/"
    page = preview(client, path, "deactivate", people.bob.user, people.admin.user)
    assert "You cannot remove your own access." in text_of(page)
    confirm(client, path, page)
    assert set(User.objects.filter(is_active=False)) == {people.bob.user}
    assert AuditEntry.objects.get(action="user.deactivate").target_id == str(people.bob.user.pk)


def inline(people: People, *rows: dict[str, Any]) -> dict[str, Any]:
    """The tenant's form as the browser sends it, with these membership rows."""
    form = {"name": "Demo", "memberships-TOTAL_FORMS": len(rows)}
    form |= {
        f"{other}-{count}_FORMS": 0
        for other in ("quotas", "limit", "log_limit")
        for count in ("TOTAL", "INITIAL")
    }
    form["memberships-INITIAL_FORMS"] = sum("id" in row for row in rows)
    for number, row in enumerate(rows):
        form |= {f"memberships-{number}-{name}": value for name, value in row.items()}
        form[f"memberships-{number}-tenant"] = str(people.demo.pk)
    return form


def test_members_are_changed_through_the_use_cases(people: People) -> None:
    bob = Membership.objects.get(user=people.bob.user)
    victor = Membership.objects.get(user=people.victor.user)
    form = inline(
        people,
        {"id": bob.pk, "user": str(people.bob.user.pk), "role": "viewer"},
        {"id": victor.pk, "user": str(people.victor.user.pk), "role": "viewer", "DELETE": "on"},
        {"user": str(people.carol.user.pk), "role": "member"},
    )
    answer = browser(people.admin).post(f"/admin/accounts/tenant/{people.demo.pk}/change/", form)
    assert answer.status_code == 302, answer.context["errors"]
    assert role_in(people.bob, people.demo) == "viewer"
    assert role_in(people.victor, people.demo) is None
    assert role_in(people.carol, people.demo) == "member"
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"member.add", "member.change", "member.remove"} <= actions
