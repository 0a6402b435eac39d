"""Signing in by OpenID Connect, against a certified provider on loopback: what a browser does, over HTTP."""

from __future__ import annotations

import pytest

from accounts import members
from accounts.credentials import sign_in
from accounts.credentials.sessions import stored_as
from accounts.errors import NotAllowed
from accounts.models import Role, User
from accounts.sign_on import admission
from accounts.sign_on.configuration import Provider
from tests.accounts.people import People
from tests.accounts.sign_on.visiting import Visitor, roles_of, trail
from tests.shared.oidc.university import University

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("provider", "people")]


def test_a_new_member_of_a_group_lands_in_the_right_tenant(uni: University, provider: Provider) -> None:
    uni.person("ada", given_name="Ada", family_name="Lovelace", groups=["vision-team"], locale="en-GB")
    visitor = Visitor()
    answer = visitor.sign_in("ada", "/profile/?a=1")
    assert (answer.status_code, answer["Location"]) == (302, "/profile/?a=1")
    me = visitor.berth.get("/api/v1/me/").json()
    assert (me["username"], me["email"], me["is_admin"]) == ("ada", "ada@example.org", False)
    assert me["tenants"] == [{"slug": "demo", "name": "Demo", "role": "member"}]
    ada = User.objects.get(username="ada")
    assert (ada.get_full_name(), ada.language, ada.has_usable_password()) == ("Ada Lovelace", "en", False)
    assert trail("sign-in") == [("ada", "done", {"by": "oidc"})]
    made = {"username": "ada", "issuer": provider.issuer}
    assert trail("user.create") == [("", "done", made)]
    assert trail("member.add") == [("", "done", {"username": "ada", "role": "member", "by": "groups"})]


def test_the_second_sign_in_is_the_same_person_also_under_another_name(uni: University) -> None:
    uni.person("grace", sub="grace-1", groups=["vision-team"])
    Visitor().sign_in("grace")
    uni.person("hopper", sub="grace-1", email="hopper@example.org", groups=["vision-team"])
    Visitor().sign_in("hopper")
    assert User.objects.get(email="hopper@example.org").username == "grace"
    assert not User.objects.filter(username="hopper").exists()


def test_the_session_is_a_new_one_serves_sockets_and_ends_with_signing_out(uni: University) -> None:
    uni.person("ada", groups=["vision-team"])
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    before = visitor.berth.session.session_key or ""
    visitor.back(address)
    session = visitor.berth.session.session_key or ""
    assert session != before
    assert sign_in.person_of(stored_as(session)) == User.objects.get(username="ada")
    assert sign_in.person_of(stored_as(before)) is None
    visitor.berth.post("/sign-out/")
    assert sign_in.person_of(stored_as(session)) is None
    assert not visitor.is_in()


# --- Groups


def test_roles_from_groups_follow_them_and_roles_given_by_hand_stay(uni: University, people: People) -> None:
    uni.person("ada", groups=["vision-team", "readers"])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "member"}  # the strongest of several
    members.set_role(people.admin, people.second, "ada", Role.VIEWER)
    uni.person("ada", groups=["vision-leads"])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "owner", "second": "viewer"}
    uni.person("ada", groups=[])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"second": "viewer"}
    assert trail("member.remove") == [("", "done", {"username": "ada", "by": "groups"})]


def test_who_changes_a_groups_role_by_hand_takes_it_over(uni: University, people: People) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    members.set_role(people.alice, people.demo, "ada", Role.VIEWER)
    Visitor().sign_in("ada")
    uni.person("ada", groups=[])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "viewer"}


def test_the_last_owner_stays_after_losing_the_group(uni: University, people: People) -> None:
    uni.person("ada", groups=["vision-leads"])
    Visitor().sign_in("ada")
    members.remove(people.admin, people.demo, "alice")
    uni.person("ada", groups=["readers"])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "owner"}
    assert trail("member.remove")[-1] == (
        "",
        "refused",
        {"username": "ada", "code": "last_owner", "by": "groups"},
    )
    members.set_role(people.admin, people.demo, "bob", Role.OWNER)
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "viewer"}


def test_admins_of_a_group_are_admins_while_they_are_in_it(uni: University) -> None:
    uni.person("ada", groups=["berth-admins"])
    visitor = Visitor()
    visitor.sign_in("ada")
    assert visitor.berth.get("/admin/").status_code == 200
    uni.person("ada", groups=[])
    visitor = Visitor()
    visitor.sign_in("ada")
    assert visitor.berth.get("/admin/").status_code == 302
    change = ("", "done", {"username": "ada", "by": "groups"})
    assert [trail("user.make_admin"), trail("user.unmake_admin")] == [[change], [change]]


def test_groups_that_the_provider_does_not_send_are_not_taken_for_none(
    uni: University, provider: Provider
) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    claims = {"sub": "ada", "_claim_names": {"groups": "src1"}, "preferred_username": "ada"}
    with pytest.raises(NotAllowed, match="too many"):
        admission.admit(provider, claims)
    assert roles_of("ada") == {"demo": "member"}
