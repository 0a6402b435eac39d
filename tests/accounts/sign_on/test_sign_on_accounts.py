"""Accounts that the provider's people get, if accounts exist already."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import ssh_keys, tokens
from accounts.errors import Conflict
from accounts.models import Role, User
from accounts.sign_on import admission
from accounts.sign_on.configuration import Provider, provider_from
from tests.accounts.people import People
from tests.accounts.sign_on.visiting import Visitor, roles_of, said, trail
from tests.cast import KEY
from tests.shared.clients import browser
from tests.shared.concurrency import at_once
from tests.shared.oidc.university import University

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("provider", "people")]


def connect(visitor: Visitor, password: str, who: str) -> Any:
    """Connect the signed-in person in their profile, as `who` at the provider."""
    page = visitor.berth.post("/profile/connect/", {"password": password}).text
    (address,) = re.findall(r'href="(http://127[^"]*)"', page)
    return visitor.back(visitor.at_the_provider(address.replace("&amp;", "&"), who=who))


def test_a_local_account_of_the_same_name_is_never_taken_over(uni: University) -> None:
    for number, name in enumerate(("alice", "Alice", "ALICE")):
        uni.person(name, sub=f"mallory-{number}", email="alice@example.org")
        visitor = Visitor()
        answer = visitor.sign_in(name)
        assert answer.status_code == 409
        assert "here already" in said(answer)
        assert not visitor.is_in()
    assert trail("sign-in") == [("", "refused", {"code": "username_taken", "by": "oidc"})] * 3


def test_its_own_person_connects_it_in_the_profile(uni: University, people: People) -> None:
    uni.person("alice", sub="the-real-alice")
    visitor = Visitor(browser(people.alice))
    assert b"Not connected" in visitor.berth.get("/profile/").content
    answer = connect(visitor, "alice-password", who="alice")
    assert answer["Location"] == "/profile/"
    assert trail("sign-on.connect")[0][0] == "alice"
    later = Visitor()
    later.sign_in("alice")
    assert later.berth.get("/api/v1/me/").json()["username"] == "alice"
    assert roles_of("alice") == {"demo": "owner"}  # given by hand: no group removes it


def test_an_account_of_the_provider_is_one_persons(uni: University, people: People) -> None:
    uni.person("ada")
    Visitor().sign_in("ada")
    visitor = Visitor(browser(people.bob))
    answer = connect(visitor, "bob-password", who="ada")
    assert answer.status_code == 409
    assert "another person" in said(answer)


def test_a_stolen_session_connects_nobody(uni: University, people: People) -> None:
    thief = browser(people.bob)
    for sent in ({}, {"password": ""}, {"password": "a guess"}):
        assert uni.issuer not in thief.post("/profile/connect/", sent).text
    people.bob.user.set_unusable_password()
    people.bob.user.save()
    assert uni.issuer in browser(people.bob).post("/profile/connect/").text  # has no password


def test_by_e_mail_only_where_the_admins_chose_it_and_it_is_verified(uni: University, settings: Any) -> None:
    User.objects.filter(username="bob").update(email="Bob@example.org")
    uni.person("robert", sub="bob-there", email="bob@example.org", email_verified=False)
    settings.OIDC = provider_from(uni.settings(BERTH_OIDC_LINK_BY_EMAIL="1"))
    Visitor().sign_in("robert")
    assert User.objects.get(username="robert").email == ""
    uni.person("bobby", sub="bob-there-2", email="bob@example.org", email_verified=True)
    visitor = Visitor()
    visitor.sign_in("bobby")
    assert visitor.berth.get("/api/v1/me/").json()["username"] == "bob"
    assert not User.objects.get(username="bob").has_usable_password()


@pytest.mark.django_db(transaction=True)
def test_two_first_sign_ins_at_once_make_one_person(provider: Provider) -> None:
    claims = {"sub": "ada-1", "preferred_username": "ada", "groups": ["vision-team"]}

    assert len(set(at_once(lambda _number: admission.admit(provider, claims), 4))) == 1
    assert SocialAccount.objects.count() == 1
    assert len(trail("member.add")) == 1


def test_an_account_made_for_sign_on_is_connected_at_the_first_sign_in(
    uni: University, people: People
) -> None:
    ada = User.objects.create_user("ada", "ada@example.org")
    members.set_role(people.admin, people.second, "ada", Role.MEMBER)
    uni.person("Ada", sub="ada-1", groups=["vision-team"])
    Visitor().sign_in("Ada")
    assert roles_of("ada") == {"demo": "member", "second": "member"}
    assert SocialAccount.objects.get(user=ada).uid == "ada-1"
    uni.person("ada", sub="ada-2")
    assert Visitor().sign_in("ada").status_code == 409  # the account belongs to ada-1 now


@pytest.mark.parametrize("used", ["token", "key", "password", "signed in", "another address", "an admin"])
def test_an_account_that_is_used_or_somebody_elses_is_not(uni: University, used: str) -> None:
    robot = User.objects.create_user("robot", "robot@example.org" if used == "another address" else "")
    match used:
        case "token":
            tokens.issue(robot, "nightly", ["read"])
        case "key":
            ssh_keys.add(Actor(robot), "laptop", KEY)
        case "password":
            robot.set_password("robot-password")
        case "signed in":
            robot.last_login = timezone.now()
        case "an admin":
            robot.is_staff = True
    robot.save()
    uni.person("robot", email="mallory@example.org")
    assert Visitor().sign_in("robot").status_code == 409
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": "róbot"},
        {"preferred_username": "-robot-"},
        {"name": "robot"},
        {"preferred_username": "李", "name": "robot"},
    ],
)
def test_a_name_that_only_looks_alike_gets_no_account(people: People, claims: dict[str, str]) -> None:
    members.set_role(people.admin, people.second, User.objects.create_user("robot").username, Role.OWNER)
    elsewhere = Provider(issuer="https://sso.example.org", client_id="berth", client_secret="s")
    with pytest.raises(Conflict, match="already"):
        admission.admit(elsewhere, {"sub": "mallory"} | claims)
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize("said_so", [False, "false", "False", 0, None])
def test_an_address_that_the_provider_doubts_is_nobodys_however_it_says_so(said_so: Any) -> None:
    elsewhere = Provider(
        issuer="https://sso.example.org", client_id="berth", client_secret="s", link_by_email=True
    )
    User.objects.filter(username="bob").update(email="bob@example.org")
    claims = {"preferred_username": "mallory", "email": "bob@example.org", "email_verified": said_so}
    mallory = admission.admit(elsewhere, {"sub": "m"} | claims)
    assert (mallory.username, mallory.email) == ("mallory", "")


def test_an_admins_account_is_not_connected_by_e_mail(uni: University, settings: Any) -> None:
    User.objects.filter(username="admin").update(email="admin@example.org")
    uni.person("root", email="admin@example.org")
    settings.OIDC = provider_from(uni.settings(BERTH_OIDC_LINK_BY_EMAIL="1"))
    visitor = Visitor()
    visitor.sign_in("root")
    assert visitor.berth.get("/api/v1/me/").json()["username"] == "root"


def test_a_deactivated_person_is_told_so(uni: University, people: People) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    members.set_active(people.admin, User.objects.get(username="ada"), active=False)
    visitor = Visitor()
    answer = visitor.sign_in("ada")
    assert answer.status_code == 403
    assert "deactivated" in said(answer)
    assert not visitor.is_in()
