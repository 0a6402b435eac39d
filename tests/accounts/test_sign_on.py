"""Signing in by OpenID Connect, against a certified provider on loopback: what a browser does, over HTTP."""

from __future__ import annotations

import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import jwt
import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone

from accounts import members, sign_in, ssh_keys, tokens
from accounts.access import Actor
from accounts.errors import Conflict, NotAllowed, NotSignedIn
from accounts.models import AuditEntry, Membership, Role, User
from accounts.sign_on import admission
from accounts.sign_on.configuration import Provider, provider_from
from accounts.sign_on.provider import Conversation
from tests.accounts.people import KEY, People, browser
from tests.e2e.oidc.university import University, university

CALLBACK = "/sign-in/oidc/callback/"
GROUPS = "vision-team=demo:member, vision-leads=demo:owner, readers=demo:viewer, berth-admins=admin"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def uni(tmp_path_factory: pytest.TempPathFactory) -> Iterator[University]:
    with university(tmp_path_factory.mktemp("university"), f"http://testserver{CALLBACK}") as started:
        yield started


@pytest.fixture
def provider(uni: University, settings: Any) -> Provider:
    settings.OIDC = provider_from(uni.settings(GROUPS))
    uni.set_clock(0)
    return settings.OIDC


class Visitor:
    """A browser with two sites open: Berth, and the university."""

    def __init__(self, client: Client | None = None) -> None:
        self.berth = client or Client()
        self.there = requests.Session()

    def to_the_provider(self, target: str = "/profile/") -> str:
        return str(self.berth.get("/sign-in/oidc/", {"next": target})["Location"])

    def at_the_provider(self, address: str, **form: str) -> str:
        """Type the name there; the address of Berth that the provider sends the browser back to."""
        page = self.there.get(address)
        answer = self.there.post(page.url, data=form, allow_redirects=False)
        while (location := answer.headers["Location"]).startswith(("http://127.", "/")):
            answer = self.there.get(urljoin(answer.url, location), allow_redirects=False)
        assert location.startswith(f"http://testserver{CALLBACK}?")
        return location

    def back(self, address: str) -> Any:
        return self.berth.get(address)

    def sign_in(self, who: str, target: str = "/profile/") -> Any:
        return self.back(self.at_the_provider(self.to_the_provider(target), who=who))

    def is_in(self) -> bool:
        return self.berth.get("/api/v1/me/").status_code == 200


def said(answer: Any) -> str:
    """The refusal on the sign-in page."""
    found = re.search(r'role="alert">.*?<strong>(.*?)</strong>', answer.content.decode(), re.DOTALL)
    assert found, answer.content.decode()
    return found[1].replace("&#x27;", "'")


def roles_of(name: str) -> dict[str, str]:
    found = Membership.objects.filter(user__username=name)
    return dict(found.values_list("tenant__slug", "role"))


def trail(action: str) -> list[Any]:
    """Who, with what outcome, and what is told beside the target's name."""
    found = AuditEntry.objects.filter(action=action).order_by("id")
    return [
        (entry.actor_name, entry.outcome, {k: v for k, v in entry.data.items() if k != "name"})
        for entry in found
    ]


def test_a_new_member_of_a_group_lands_in_the_right_tenant(
    uni: University, provider: Provider, people: People
) -> None:
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


def test_the_second_sign_in_is_the_same_person_also_under_another_name(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("grace", sub="grace-1", groups=["vision-team"])
    Visitor().sign_in("grace")
    uni.person("hopper", sub="grace-1", email="hopper@example.org", groups=["vision-team"])
    Visitor().sign_in("hopper")
    assert User.objects.get(email="hopper@example.org").username == "grace"
    assert not User.objects.filter(username="hopper").exists()


def test_the_session_is_a_new_one_serves_sockets_and_ends_with_signing_out(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("ada", groups=["vision-team"])
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    before = visitor.berth.session.session_key or ""
    visitor.back(address)
    session = visitor.berth.session.session_key or ""
    assert session != before
    assert sign_in.person_of(session) == User.objects.get(username="ada")
    assert sign_in.person_of(before) is None
    visitor.berth.post("/sign-out/")
    assert sign_in.person_of(session) is None
    assert not visitor.is_in()


# --- Groups


def test_roles_that_came_from_groups_follow_them_and_roles_given_by_hand_stay(
    uni: University, provider: Provider, people: People
) -> None:
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


def test_who_changes_a_groups_role_by_hand_takes_it_over(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    members.set_role(people.alice, people.demo, "ada", Role.VIEWER)
    Visitor().sign_in("ada")
    uni.person("ada", groups=[])
    Visitor().sign_in("ada")
    assert roles_of("ada") == {"demo": "viewer"}


def test_the_last_owner_stays_when_their_group_is_lost_and_the_trail_says_so(
    uni: University, provider: Provider, people: People
) -> None:
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


def test_admins_of_a_group_are_admins_while_they_are_in_it(
    uni: University, provider: Provider, people: People
) -> None:
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


def test_groups_that_the_provider_keeps_to_itself_are_not_taken_for_none(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    claims = {"sub": "ada", "_claim_names": {"groups": "src1"}, "preferred_username": "ada"}
    with pytest.raises(NotAllowed, match="too many"):
        admission.admit(provider, claims)
    assert roles_of("ada") == {"demo": "member"}


# --- Accounts that are there already


def test_a_local_account_of_the_same_name_is_never_taken_over(
    uni: University, provider: Provider, people: People
) -> None:
    for number, name in enumerate(("alice", "Alice", "ALICE")):
        uni.person(name, sub=f"mallory-{number}", email="alice@example.org")
        visitor = Visitor()
        answer = visitor.sign_in(name)
        assert answer.status_code == 409
        assert "here already" in said(answer)
        assert not visitor.is_in()
    assert trail("sign-in") == [("", "refused", {"code": "username_taken", "by": "oidc"})] * 3


def test_its_own_person_connects_it_in_the_profile(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("alice", sub="the-real-alice")
    visitor = Visitor(browser(people.alice))
    assert b"Not connected" in visitor.berth.get("/profile/").content
    page = visitor.berth.post("/profile/connect/", {"password": "alice-password"}).content.decode()
    address = re.search(r'href="(http://127[^"]*)"', page)
    assert address
    answer = visitor.back(visitor.at_the_provider(address[1].replace("&amp;", "&"), who="alice"))
    assert answer["Location"] == "/profile/"
    assert trail("sign-on.connect")[0][0] == "alice"
    later = Visitor()
    later.sign_in("alice")
    assert later.berth.get("/api/v1/me/").json()["username"] == "alice"
    assert roles_of("alice") == {"demo": "owner"}  # given by hand: no group takes it


def test_an_account_of_the_provider_is_one_persons(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("ada")
    Visitor().sign_in("ada")
    visitor = Visitor(browser(people.bob))
    page = visitor.berth.post("/profile/connect/", {"password": "bob-password"}).content.decode()
    address = re.search(r'href="(http://127[^"]*)"', page)
    assert address
    answer = visitor.back(visitor.at_the_provider(address[1].replace("&amp;", "&"), who="ada"))
    assert answer.status_code == 409
    assert "somebody else" in said(answer)


def test_a_stolen_session_connects_nobody(uni: University, provider: Provider, people: People) -> None:
    thief = browser(people.bob)
    for sent in ({}, {"password": ""}, {"password": "a guess"}):
        assert uni.issuer not in thief.post("/profile/connect/", sent).content.decode()
    people.bob.user.set_unusable_password()
    people.bob.user.save()
    assert uni.issuer in browser(people.bob).post("/profile/connect/").content.decode()  # who has none


def test_by_e_mail_only_where_the_admins_chose_it_and_it_is_verified(
    uni: University, settings: Any, people: People
) -> None:
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
def test_two_first_sign_ins_at_once_make_one_person(provider: Provider, people: People) -> None:
    claims = {"sub": "ada-1", "preferred_username": "ada", "groups": ["vision-team"]}

    def sign_in_once(_number: int) -> User:
        try:
            return admission.admit(provider, claims)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(sign_in_once, range(4)))) == 1
    assert SocialAccount.objects.count() == 1
    assert len(trail("member.add")) == 1


def test_an_account_that_an_admin_made_for_it_is_its_persons_at_the_first_sign_in(
    uni: University, provider: Provider, people: People
) -> None:
    ada = User.objects.create_user("ada", "ada@example.org")
    members.set_role(people.admin, people.second, "ada", Role.MEMBER)
    uni.person("Ada", sub="ada-1", groups=["vision-team"])
    Visitor().sign_in("Ada")
    assert roles_of("ada") == {"demo": "member", "second": "member"}
    assert SocialAccount.objects.get(user=ada).uid == "ada-1"
    uni.person("ada", sub="ada-2")
    assert Visitor().sign_in("ada").status_code == 409  # it has its person now


@pytest.mark.parametrize("used", ["token", "key", "password", "signed in", "another address", "an admin"])
def test_an_account_that_is_used_or_somebody_elses_is_not(
    uni: University, provider: Provider, people: People, used: str
) -> None:
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
def test_an_account_that_is_awaited_is_not_for_whoever_only_looks_like_its_name(
    people: People, claims: dict[str, str]
) -> None:
    members.set_role(people.admin, people.second, User.objects.create_user("robot").username, Role.OWNER)
    elsewhere = Provider(issuer="https://sso.example.org", client_id="berth", client_secret="s")
    with pytest.raises(Conflict, match="already"):
        admission.admit(elsewhere, {"sub": "mallory"} | claims)
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize("said_so", [False, "false", "False", 0, None])
def test_an_address_that_the_provider_doubts_is_nobodys_however_it_says_so(
    people: People, said_so: Any
) -> None:
    elsewhere = Provider(
        issuer="https://sso.example.org", client_id="berth", client_secret="s", link_by_email=True
    )
    User.objects.filter(username="bob").update(email="bob@example.org")
    claims = {"preferred_username": "mallory", "email": "bob@example.org", "email_verified": said_so}
    mallory = admission.admit(elsewhere, {"sub": "m"} | claims)
    assert (mallory.username, mallory.email) == ("mallory", "")


def test_an_admins_account_is_not_connected_by_e_mail(uni: University, settings: Any, people: People) -> None:
    User.objects.filter(username="admin").update(email="admin@example.org")
    uni.person("root", email="admin@example.org")
    settings.OIDC = provider_from(uni.settings(BERTH_OIDC_LINK_BY_EMAIL="1"))
    visitor = Visitor()
    visitor.sign_in("root")
    assert visitor.berth.get("/api/v1/me/").json()["username"] == "root"


def test_a_deactivated_person_is_told_so(uni: University, provider: Provider, people: People) -> None:
    uni.person("ada", groups=["vision-team"])
    Visitor().sign_in("ada")
    members.set_active(people.admin, User.objects.get(username="ada"), active=False)
    visitor = Visitor()
    answer = visitor.sign_in("ada")
    assert answer.status_code == 403
    assert "deactivated" in said(answer)
    assert not visitor.is_in()


# --- Attacks


def test_a_state_of_another_browser_or_tampered_with_is_refused(
    uni: University, provider: Provider, people: People
) -> None:
    uni.person("ada")
    attacker, victim = Visitor(), Visitor()
    address = attacker.at_the_provider(attacker.to_the_provider(), who="ada")
    victim.to_the_provider()
    for forged in (address, re.sub(r"state=[^&]+", "state=made-up", address), CALLBACK, f"{CALLBACK}?code=x"):
        answer = victim.back(forged)
        assert answer.status_code == 401
        assert "not begun in this browser" in said(answer)
    assert not victim.is_in()


def test_a_code_counts_once(uni: University, provider: Provider, people: People) -> None:
    uni.person("ada")
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    assert visitor.back(address).status_code == 302
    assert said(Visitor(visitor.berth).back(address))  # its state is used up
    again = Visitor()
    fresh = parse_qs(urlsplit(again.to_the_provider()).query)["state"][0]
    answer = again.back(re.sub(r"state=[^&]+", f"state={fresh}", address))
    assert (answer.status_code, "prove" in said(answer)) == (401, True)
    assert not again.is_in()


@pytest.fixture
def tokens_of(uni: University, provider: Provider) -> Callable[[str, str], dict[str, Any]]:
    """Real tokens of the provider for a client of it, with a nonce."""

    def get(client: str, nonce: str) -> dict[str, Any]:
        uni.person("ada")
        visitor = Visitor()
        verifier = "v" * 64
        wanted = {
            "client_id": client,
            "redirect_uri": f"http://testserver{CALLBACK}",
            "response_type": "code",
            "scope": "openid",
            "nonce": nonce,
            "state": "x",
            "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = f"{uni.issuer}/auth?{urlencode(wanted)}"
        code = parse_qs(urlsplit(visitor.at_the_provider(address, who="ada")).query)["code"][0]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": f"http://testserver{CALLBACK}",
            "client_id": client,
            "client_secret": f"{client}-secret-for-tests",
            "code_verifier": verifier,
        }
        return dict(requests.post(f"{uni.issuer}/token", data=form).json())

    return get


def verify(provider: Provider, tokens: dict[str, Any], nonce: str) -> dict[str, Any]:
    conversation = Conversation(RequestFactory().get("/"), provider, "")
    return conversation._verify(conversation._discover(), tokens, nonce)


def test_an_id_token_counts_only_for_this_client_and_this_sign_in(
    provider: Provider, tokens_of: Callable[[str, str], dict[str, Any]]
) -> None:
    ours, foreign = tokens_of("berth", "n-1"), tokens_of("another", "n-1")
    assert verify(provider, ours, "n-1")["sub"] == "ada"
    for given, nonce in ((ours, "n-2"), (foreign, "n-1"), ({}, "n-1")):
        with pytest.raises(NotSignedIn) as refusal:
            verify(provider, given, nonce)
        assert refusal.value.code == "sign_on_unproven"


def test_an_id_token_counts_only_as_the_provider_signed_it(
    provider: Provider, tokens_of: Callable[[str, str], dict[str, Any]]
) -> None:
    real = tokens_of("berth", "n")["id_token"]
    kid = {"kid": jwt.get_unverified_header(real)["kid"]}
    forged_claims = jwt.decode(real, options={"verify_signature": False}) | {"sub": "somebody-else"}
    own_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    signed, _dot, signature = real.rpartition(".")
    forged = [
        jwt.encode(forged_claims, "", algorithm="none", headers=kid),
        jwt.encode(forged_claims, provider.client_secret.ljust(32), algorithm="HS256", headers=kid),
        jwt.encode(forged_claims, own_key, algorithm="RS256", headers=kid),
        jwt.encode(forged_claims, own_key, algorithm="RS256", headers={"kid": "of-nobody"}),
        f"{signed}.{signature[::-1]}",
    ]
    for token in forged:
        with pytest.raises(NotSignedIn):
            verify(provider, {"id_token": token}, "n")


def test_another_issuer_than_the_configured_one_is_refused(
    uni: University, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OIDC = replace(
        provider_from(uni.settings()) or pytest.fail(), issuer=uni.issuer.replace("127.0.0.1", "localhost")
    )
    answer = Client().get("/sign-in/oidc/")
    assert answer.status_code == 502
    assert "not set up rightly" in said(answer)
    assert "another issuer" in caplog.text


# --- Trouble


def test_a_provider_that_does_not_answer_is_said(settings: Any) -> None:
    settings.OIDC = Provider("http://127.0.0.1:9", "berth", "x", name="Example University")
    answer = Client().get("/sign-in/oidc/?next=/launch/")
    assert (answer.status_code, said(answer)) == (502, "Example University does not answer.")
    assert b"next=%2Flaunch%2F" in answer.content  # the way on is kept


def test_a_wrong_secret_is_the_admins_to_mend_and_stands_in_no_log(
    uni: University, provider: Provider, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.OIDC = replace(provider, client_secret="wrong-secret-hunter2")
    uni.person("ada")
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    answer = visitor.back(address)
    assert (answer.status_code, "not set up rightly" in said(answer)) == (502, True)
    assert "BERTH_OIDC_CLIENT_SECRET" in caplog.text
    assert "hunter2" not in caplog.text + answer.content.decode() + repr(settings.OIDC)


def test_neither_secret_nor_code_nor_token_reaches_a_log_or_the_trail(
    uni: University, provider: Provider, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    uni.person("ada", groups=["vision-team"])
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    visitor.back(address)
    code = parse_qs(urlsplit(address).query)["code"][0]
    kept = caplog.text + str(list(AuditEntry.objects.values())) + str(list(SocialAccount.objects.values()))
    for secret in (code, provider.client_secret, "eyJ"):
        assert secret not in kept


def test_strangers_do_not_ask_the_provider_without_end(
    uni: University, provider: Provider, people: People, settings: Any
) -> None:
    settings.API_RATES = settings.API_RATES | {"stranger": 2}
    assert [Client().get("/sign-in/oidc/").status_code for _number in range(3)] == [302, 302, 429]
    assert Session.objects.count() == 2


def test_who_cancels_comes_back_to_the_sign_in_page(
    uni: University, provider: Provider, people: People
) -> None:
    visitor = Visitor()
    answer = visitor.back(
        visitor.at_the_provider(visitor.to_the_provider("/launch/?flavor=a100-1"), cancel="1")
    )
    assert answer.status_code == 401
    assert "cancelled" in said(answer)
    assert b"Sign in with Example University" in answer.content
    assert b"/sign-in/oidc/?next=%2Flaunch%2F%3Fflavor%3Da100-1" in answer.content  # not forgotten


def test_clocks_that_differ_are_named(uni: University, provider: Provider) -> None:
    uni.person("ada")
    late = Visitor()
    address = late.at_the_provider(late.to_the_provider(), who="ada")
    uni.set_clock(-4000)  # its tokens are over when they come
    answers = [late.back(address)]
    uni.set_clock(4000)  # its tokens are of the future
    answers.append(Visitor().sign_in("ada"))
    uni.set_clock(0)
    assert [answer.status_code for answer in answers] == [502, 502]
    assert all("clocks" in said(answer) for answer in answers)


def test_it_leads_nowhere_else_after_signing_in(uni: University, provider: Provider, people: People) -> None:
    uni.person("ada")
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        assert Visitor().sign_in("ada", target)["Location"] == "/"
