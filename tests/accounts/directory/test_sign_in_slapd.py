"""Sign-in with a name and password of a real OpenLDAP server."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from accounts import members
from accounts.credentials import sign_in
from accounts.directory import asking
from accounts.directory.configuration import directory_from
from accounts.errors import NotSignedIn
from accounts.models import Role, User
from tests.accounts.directory.slapd import BASE, Slapd, enter
from tests.accounts.people import People
from tests.accounts.sign_on.visiting import roles_of, trail
from tests.shared.clients import browser

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("people")]
WRONG = (401, "Incorrect user name or password.")
AWAY = (502, "Example University does not answer.")


def test_it_lets_in_and_name_address_and_roles_follow(uni: Slapd) -> None:
    uni.person("ada", groups=["vision-team", "readers"], preferredLanguage="ko")
    assert enter("ada") == (302, "ada")
    ada = User.objects.get(username="ada")
    assert (ada.get_full_name(), ada.email, ada.language) == ("Ada Lovelace", "ada@example.org", "ko")
    assert (roles_of("ada"), ada.has_usable_password()) == ({"demo": "member"}, False)
    assert trail("sign-in") == [("ada", "done", {"by": "ldap"})]
    uni.leave_group("ada", "vision-team")
    uni.change("ada", mail="countess@example.org", sn="King")
    assert enter("ADA") == (302, "ada")
    ada.refresh_from_db()
    assert (ada.get_full_name(), ada.email) == ("Ada King", "countess@example.org")
    assert roles_of("ada") == {"demo": "viewer"}


def test_groups_are_also_found_by_a_filter_and_only_below_their_base(uni: Slapd, settings: Any) -> None:
    settings.LDAP = directory_from(uni.settings(BERTH_LDAP_GROUP_FILTER="(member={dn})"))
    dn = uni.person("ada (R&D)*", groups=["vision-team"])
    uni.add(f"cn=berth-admins,ou=elsewhere,{BASE}", "groupOfNames", {"member": dn})
    assert enter("ada (R&D)*") == (302, "ada-R-D")
    assert (roles_of("ada-R-D"), User.objects.get(username="ada-R-D").is_staff) == ({"demo": "member"}, False)
    settings.LDAP = directory_from(uni.settings())
    assert enter("ada (R&D)*") == (302, "ada-R-D")
    assert (roles_of("ada-R-D"), User.objects.get(username="ada-R-D").is_staff) == ({"demo": "member"}, False)


def test_wrong_unknown_and_deactivated_look_the_same_and_an_empty_password_binds_nobody(uni: Slapd) -> None:
    for name in ("ada", "gone"):
        uni.person(name)
    assert enter("gone") == (302, "gone")
    User.objects.filter(username="gone").update(is_active=False)
    for pair in (
        ("ada", "wrong"),
        ("nobody", "secret"),
        ("gone", "secret"),
        ("berth", "only-for-tests"),
        ("alice", "x"),
    ):
        assert enter(*pair) == WRONG
    assert not Client().post("/sign-in/", {"username": "ada", "password": ""}).cookies.get("berth_session")
    with pytest.raises(NotSignedIn):
        sign_in.authenticate(None, "ada", "")
    assert not User.objects.filter(username="ada").exists()


def test_what_is_typed_into_the_name_is_no_filter(uni: Slapd) -> None:
    uni.person("ada")
    uni.person("bea", sn="Wild")
    for typed in (
        "*",
        "a*",
        "ada)(uid=*",
        "ada)(|(uid=*",
        "(uid=ada)",
        "\\61da",
        "ada\\00",
        "a\u00adda",
        "ａｄａ",
    ):
        assert enter(typed) == WRONG, typed
    assert not SocialAccount.objects.exists()
    assert enter("ada") == (302, "ada")


def test_an_account_that_exists_is_never_taken_over(uni: Slapd, people: People) -> None:
    uni.person("alice", mail="alice@example.org")
    status, text = enter("alice")
    assert (status, "here already" in text) == (409, True)
    assert enter("alice", "alice-password") == (302, "alice")  # the one with a password of Berth
    made_ahead = User.objects.create_user("ada", "ada@example.org")
    members.set_role(people.admin, people.second, "ada", Role.MEMBER)
    uni.person("ada", groups=["vision-team"])
    assert enter("ada") == (302, "ada")
    assert roles_of("ada") == {"demo": "member", "second": "member"}
    assert SocialAccount.objects.get(user=made_ahead).provider == "ldap"


def test_a_person_is_known_by_the_id_whatever_the_name(uni: Slapd) -> None:
    uni.person("ada")
    assert enter("ada") == (302, "ada")
    uni.rename("ada", "countess")
    assert enter("countess") == (302, "ada")
    uni.person("ada", password="another person")
    assert enter("ada", "another person")[0] == 409


@pytest.mark.parametrize("url", ["ldaps", "start_tls"])
def test_only_a_server_with_a_certificate_of_our_ca_gets_a_password(
    uni: Slapd, settings: Any, url: str
) -> None:
    uni.person("ada")
    plain = {"BERTH_LDAP_URL": f"ldap://127.0.0.1:{uni.port}", "BERTH_LDAP_START_TLS": "1"}
    ours = uni.settings(**(plain if url == "start_tls" else {}))
    settings.LDAP = directory_from(
        ours | {"BERTH_LDAP_CA_FILE": "", "BERTH_LDAP_CA": (uni.folder / "ca.pem").read_text()}
    )
    assert enter("ada") == (302, "ada")
    asking._failed_at.clear()
    settings.LDAP = directory_from(ours | {"BERTH_LDAP_CA_FILE": str(uni.folder / "stranger.pem")})
    assert enter("ada") == AWAY
    other_name = {"BERTH_LDAP_URL": ours["BERTH_LDAP_URL"].replace("127.0.0.1", "localhost")}
    settings.LDAP = directory_from(ours | other_name)
    assert enter("ada") == AWAY


def test_while_it_is_away_berths_own_passwords_let_in_and_another_server_stands_in(
    uni: Slapd, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    uni.person("ada", password="a very secret word")
    two = f"ldaps://127.0.0.1:1 ldaps://127.0.0.1:{uni.tls_port}"
    settings.LDAP = directory_from(uni.settings(BERTH_LDAP_URL=two))
    with caplog.at_level(logging.DEBUG):
        assert enter("ada", "a very secret word") == (302, "ada")
        uni.stop()
        for name, password in (("ada", "a very secret word"), ("nobody", "x"), ("alice", "wrong")):
            assert enter(name, password) == AWAY
        assert enter("alice", "alice-password") == (302, "alice")
    assert "does not answer" in caplog.text
    assert "very secret" not in caplog.text and "only-for-tests" not in caplog.text


def test_a_password_arrives_as_it_was_typed(uni: Slapd) -> None:
    for name, password in (("ada", "soft\u00adhyphen \u2168"), ("bea", "\u0627 right and left a")):
        uni.person(name, password=password)
        assert enter(name, password) == (302, name)


def test_guessing_is_slowed_down_as_for_passwords_of_berth(uni: Slapd) -> None:
    uni.person("ada")
    client = Client()
    sent = [
        client.post("/sign-in/", {"username": "ada", "password": "wrong"}).status_code for _number in range(6)
    ]
    assert sent == [401] * 4 + [429] * 2
    assert client.post("/sign-in/", {"username": "Ada", "password": "secret"}).status_code == 429


def test_admins_by_group_set_up_a_second_factor_and_keep_it_with_their_password_there(
    uni: Slapd, settings: Any
) -> None:
    settings.STAFF_NEED_SECOND_FACTOR = True
    uni.person("root", groups=["berth-admins"])
    client = Client()
    answer = client.post("/sign-in/", {"username": "root", "password": "secret", "next": "/profile/"})
    assert answer["Location"] == "/sign-in/set-up/"
    root = User.objects.get(username="root")
    assert root.is_staff
    client.force_login(root, backend=sign_in.BERTH)
    assert "does not use" not in client.get("/profile/second-factor/").text
    sign_in.confirm(root, "secret")
    with pytest.raises(NotSignedIn):
        sign_in.confirm(root, "wrong")


def test_passwords_of_berth_for_admins_alone_leave_the_directorys_to_everybody(
    uni: Slapd, settings: Any
) -> None:
    settings.PASSWORDS_FOR = "admins"
    uni.person("ada")
    assert enter("ada") == (302, "ada")
    ada = User.objects.get(username="ada")
    ada.set_password("secret")  # the same in both places
    ada.save()
    assert enter("ada") == (302, "ada")
    assert enter("alice", "alice-password") == WRONG


def test_a_searching_account_that_is_refused_and_a_wrong_base_are_the_directorys_fault(
    uni: Slapd, settings: Any
) -> None:
    uni.person("ada")
    for wrong in ({"BERTH_LDAP_BIND_PASSWORD": "old"}, {"BERTH_LDAP_PEOPLE_BASE": f"ou=nothing,{BASE}"}):
        asking._failed_at.clear()
        settings.LDAP = directory_from(uni.settings(**wrong))
        assert enter("ada") == AWAY


def test_its_own_person_connects_an_account_in_the_profile(uni: Slapd, people: People) -> None:
    uni.person("lice")
    mine = browser(people.alice)
    assert "Example University" in mine.get("/profile/").text
    sent = {"there-username": "lice", "there-password": "secret", "there-own": "alice-password"}
    for wrong in ({"there-password": "x"}, {"there-own": "x"}, {"there-username": "*"}):
        assert mine.post("/profile/connect-directory/", sent | wrong).status_code == 401
    assert mine.get("/profile/connect-directory/").status_code == 200
    assert mine.post("/profile/connect-directory/", sent)["Location"] == "/profile/"
    assert enter("lice") == (302, "alice")
    assert roles_of("alice") == {"demo": "owner"}  # given by hand: no group removes it
    answer = browser(people.bob).post("/profile/connect-directory/", sent | {"there-own": "bob-password"})
    assert answer.status_code == 409
