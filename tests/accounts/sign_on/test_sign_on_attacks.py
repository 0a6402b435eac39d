"""Forged proofs of identity, and a provider that misbehaves."""

from __future__ import annotations

import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.sessions.models import Session
from django.test import Client, RequestFactory

from accounts.errors import NotSignedIn
from accounts.models import AuditEntry
from accounts.sign_on.configuration import Provider, provider_from
from accounts.sign_on.provider import Conversation
from tests.accounts.sign_on.visiting import CALLBACK, Visitor, said
from tests.shared.oidc.university import University

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("provider", "people")]


def test_a_state_of_another_browser_or_tampered_with_is_refused(uni: University) -> None:
    uni.person("ada")
    attacker, victim = Visitor(), Visitor()
    address = attacker.at_the_provider(attacker.to_the_provider(), who="ada")
    victim.to_the_provider()
    for forged in (address, re.sub(r"state=[^&]+", "state=made-up", address), CALLBACK, f"{CALLBACK}?code=x"):
        answer = victim.back(forged)
        assert answer.status_code == 401
        assert "started in another browser" in said(answer)
    assert not victim.is_in()


def test_a_code_counts_once(uni: University) -> None:
    uni.person("ada")
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    assert visitor.back(address).status_code == 302
    assert said(Visitor(visitor.berth).back(address))  # its state is used up
    again = Visitor()
    fresh = parse_qs(urlsplit(again.to_the_provider()).query)["state"][0]
    answer = again.back(re.sub(r"state=[^&]+", f"state={fresh}", address))
    assert (answer.status_code, "could not confirm" in said(answer)) == (401, True)
    assert not again.is_in()


@pytest.fixture
def tokens_of(uni: University, provider: Provider) -> Callable[[str, str], dict[str, Any]]:
    """Return a function that gets real tokens of the provider, for a client and a nonce."""

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


def test_an_id_token_counts_for_this_client_and_sign_in(
    provider: Provider, tokens_of: Callable[[str, str], dict[str, Any]]
) -> None:
    ours, foreign = tokens_of("berth", "n-1"), tokens_of("another", "n-1")
    assert verify(provider, ours, "n-1")["sub"] == "ada"
    for given, nonce in ((ours, "n-2"), (foreign, "n-1"), ({}, "n-1")):
        with pytest.raises(NotSignedIn) as refusal:
            verify(provider, given, nonce)
        assert refusal.value.code == "sign_on_unproven"


def test_a_forged_id_token_is_refused(
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


def test_another_issuer_is_refused(uni: University, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.OIDC = replace(
        provider_from(uni.settings()) or pytest.fail(), issuer=uni.issuer.replace("127.0.0.1", "localhost")
    )
    answer = Client().get("/sign-in/oidc/")
    assert answer.status_code == 502
    assert "another issuer" in caplog.text


# --- Faults


def test_a_provider_that_does_not_answer_is_said(settings: Any) -> None:
    settings.OIDC = Provider("http://127.0.0.1:9", "berth", "x", name="Example University")
    answer = Client().get("/sign-in/oidc/?next=/launch/")
    assert (answer.status_code, said(answer)) == (502, "Example University does not answer.")
    assert b"next=%2Flaunch%2F" in answer.content  # the target is kept


def test_a_wrong_client_secret_is_reported_and_not_logged(
    uni: University, provider: Provider, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.OIDC = replace(provider, client_secret="wrong-secret-hunter2")
    uni.person("ada")
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    answer = visitor.back(address)
    assert (answer.status_code, "not set up correctly" in said(answer)) == (502, True)
    assert "BERTH_OIDC_CLIENT_SECRET" in caplog.text
    assert "hunter2" not in caplog.text + answer.text + repr(settings.OIDC)


def test_secrets_reach_neither_log_nor_trail(
    uni: University, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    uni.person("ada", groups=["vision-team"])
    visitor = Visitor()
    address = visitor.at_the_provider(visitor.to_the_provider(), who="ada")
    visitor.back(address)
    code = parse_qs(urlsplit(address).query)["code"][0]
    kept = caplog.text + str(list(AuditEntry.objects.values())) + str(list(SocialAccount.objects.values()))
    for secret in (code, provider.client_secret):
        assert secret not in kept
    assert not re.search(r"eyJ[\w-]+\.eyJ", kept)  # no token; three letters alone may be anything


def test_strangers_do_not_ask_the_provider_without_end(uni: University, settings: Any) -> None:
    settings.API_RATES = settings.API_RATES | {"stranger": 2}
    assert [Client().get("/sign-in/oidc/").status_code for _number in range(3)] == [302, 302, 429]
    assert Session.objects.count() == 2


def test_who_cancels_comes_back_to_the_sign_in_page(uni: University) -> None:
    visitor = Visitor()
    answer = visitor.back(
        visitor.at_the_provider(visitor.to_the_provider("/launch/?flavor=a100-1"), cancel="1")
    )
    assert answer.status_code == 401
    assert "cancelled" in said(answer)
    assert b"Sign in with Example University" in answer.content
    assert b"/sign-in/oidc/?next=%2Flaunch%2F%3Fflavor%3Da100-1" in answer.content  # the target is kept


def test_clocks_that_differ_are_named(uni: University) -> None:
    uni.person("ada")
    late = Visitor()
    address = late.at_the_provider(late.to_the_provider(), who="ada")
    uni.set_clock(-4000)  # its tokens have expired on arrival
    answers = [late.back(address)]
    uni.set_clock(4000)  # its tokens are from the future
    answers.append(Visitor().sign_in("ada"))
    uni.set_clock(0)
    assert [answer.status_code for answer in answers] == [502, 502]
    assert all("clocks" in said(answer) for answer in answers)


def test_it_leads_nowhere_else_after_signing_in(uni: University) -> None:
    uni.person("ada")
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        assert Visitor().sign_in("ada", target)["Location"] == "/"
