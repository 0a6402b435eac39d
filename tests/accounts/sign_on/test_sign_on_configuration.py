"""Sign-on settings in the environment, and their meaning."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from accounts.sign_on.admission import safe_username
from accounts.sign_on.configuration import Grant, provider_from, read_grants
from accounts.sign_on.groups import groups_in, is_admin, wanted_roles

GOOD = {
    "BERTH_OIDC_ISSUER": "https://sso.example.org/realms/research/",
    "BERTH_OIDC_CLIENT_ID": "berth",
    "BERTH_OIDC_CLIENT_SECRET": "hunter2",
}


def test_without_an_issuer_there_is_none() -> None:
    assert provider_from({}) is None
    assert provider_from({"BERTH_OIDC_NAME": "x", "BERTH_OIDC_ISSUER": " "}) is None


def test_three_settings_are_enough() -> None:
    provider = provider_from(GOOD)
    assert provider is not None
    assert provider.issuer == "https://sso.example.org/realms/research"
    assert provider.scopes == ("openid", "profile", "email")
    assert (provider.groups_claim, provider.grants, provider.link_by_email) == ("groups", (), False)
    assert "hunter2" not in repr(provider)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"BERTH_OIDC_CLIENT_SECRET": ""}, "BERTH_OIDC_CLIENT_SECRET"),
        ({"BERTH_OIDC_ISSUER": "http://sso.example.org"}, "https"),
        ({"BERTH_OIDC_ISSUER": "http://127.0.0.1.example.org"}, "https"),
        ({"BERTH_OIDC_ISSUER": "sso.example.org"}, "https"),
        ({"BERTH_OIDC_GROUPS": "vision-team"}, "“vision-team” is not understood"),
        ({"BERTH_OIDC_GROUPS": "vision-team=vision"}, "is not understood"),
        ({"BERTH_OIDC_GROUPS": "vision-team=vision:boss"}, "owner, member, viewer"),
        ({"BERTH_OIDC_GROUPS": "=vision:member"}, "is not understood"),
        ({"BERTH_OIDC_GROUPS": "a=:member"}, "is not understood"),
    ],
)
def test_what_is_wrong_is_said_at_the_start(changed: dict[str, str], says: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=says):
        provider_from(GOOD | changed)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"])
def test_plain_http_is_for_this_machine_itself(issuer: str) -> None:
    assert provider_from(GOOD | {"BERTH_OIDC_ISSUER": issuer})


def test_groups_give_roles_the_strongest_first() -> None:
    grants = list(
        read_grants(
            "a=vision:viewer, b=vision:owner,\n c=vision:member , /x/y=speech:member, root=admin,",
            "BERTH_OIDC_GROUPS",
        )
    )
    assert grants[0] == Grant("a", "viewer", "vision")
    assert wanted_roles(frozenset("abc"), grants) == {"vision": "owner"}
    assert wanted_roles(frozenset({"c", "a", "/x/y"}), grants) == {"vision": "member", "speech": "member"}
    assert wanted_roles(frozenset({"admin", "other"}), grants) == {}
    assert is_admin(frozenset({"root"}), grants)
    assert not is_admin(frozenset({"admin"}), grants)


@pytest.mark.parametrize(
    ("claims", "claim", "groups"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}),
        ({"https://example.org/groups": ["a"]}, "https://example.org/groups", {"a"}),
        ({}, "groups", set()),
        ({"groups": None}, "groups", set()),
        ({"groups": {"a": 1}}, "groups", set()),
        ({"groups": ["a", 1, None, ["b"]]}, "groups", {"a"}),
        ({"groups": "x"}, "groups.more", set()),
    ],
)
def test_groups_are_found_whatever_the_provider_sends(claims: Any, claim: str, groups: set[str]) -> None:
    assert groups_in(claims, claim) == groups


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "ada"}, "ada"),
        ({"preferred_username": "ada@example.org"}, "ada@example.org"),
        ({"preferred_username": "Ada Lovelace"}, "Ada-Lovelace"),
        ({"preferred_username": "../admin"}, "admin"),
        ({"preferred_username": "zoë"}, "zoe"),
        ({"preferred_username": "\u0430dmin"}, "dmin"),  # a Cyrillic letter that looks like an a
        ({"preferred_username": "李", "email": "li@example.org"}, "li@example.org"),
        ({"preferred_username": "a" * 500}, "a" * 150),
        ({"preferred_username": "<script>"}, "script"),
        ({"preferred_username": {"a": 1}, "name": "x"}, "a-1"),
        ({"sub": "s-1"}, "person-3c0f9b2b"),
    ],
)
def test_a_user_name_is_made_safe(claims: dict[str, Any], name: str) -> None:
    made = safe_username({"sub": "s-1"} | claims)
    assert made == name or (name.startswith("person-") and made.startswith("person-"))
