import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import tokens
from accounts.errors import Conflict, Invalid, NotAllowed, NotSignedIn, NotThere
from accounts.models import APIToken, AuditEntry, Membership
from tests.accounts.people import People


def refused(secret: str) -> str:
    with pytest.raises(NotSignedIn) as refusal:
        tokens.authenticate(secret)
    return refusal.value.message


def test_a_new_token_signs_its_person_in(people: People) -> None:
    token, secret = tokens.issue(people.alice.user, "laptop", ["read", "workspaces"], None, 30)
    assert re.fullmatch(r"brt_[a-z0-9]{12}_[A-Za-z0-9]{40}", secret)
    found = tokens.authenticate(secret)
    assert (found.pk, found.user, found.scopes) == (token.pk, people.alice.user, ["read", "workspaces"])
    assert abs(found.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)


def test_the_secret_is_nowhere_in_the_database(people: People) -> None:
    _token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    kept = [*APIToken.objects.values(), *AuditEntry.objects.values()]
    assert secret not in str(kept)
    assert secret.split("_")[2] not in str(kept)


@pytest.mark.parametrize(
    "change",
    [
        {"expires_at": timezone.now() - timedelta(seconds=1)},
        {"revoked_at": timezone.now()},
    ],
    ids=["expired", "revoked"],
)
def test_a_token_that_ended_is_refused_like_an_unknown_one(people: People, change: dict[str, Any]) -> None:
    token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    tokens.authenticate(secret)
    APIToken.objects.filter(pk=token.pk).update(**change)
    assert refused(secret) == refused("brt_aaaaaaaaaaaa_" + "b" * 40)


@pytest.mark.parametrize(
    "secret", ["", "brt", "brt__", "brt_x", "x_y_z", "brt_é_é", "brt_\x00_x", "a" * 10_000, "brt_a_b_c"]
)
def test_nonsense_is_refused(db: None, secret: str) -> None:
    refused(secret)


def test_the_right_prefix_with_another_secret_is_refused(people: People) -> None:
    _token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    refused(secret[:-1] + ("a" if secret[-1] != "a" else "b"))


def test_tokens_work_only_while_their_person_is_active(people: People) -> None:
    _token, secret = tokens.issue(people.bob.user, "laptop", ["read"])
    members.set_active(people.admin, people.bob.user, active=False)
    refused(secret)
    members.set_active(people.admin, people.bob.user, active=True)
    tokens.authenticate(secret)


def test_a_token_bound_to_a_tenant_ends_with_the_membership(people: People) -> None:
    Membership.objects.create(tenant=people.second, user=people.bob.user, role="member")
    _token, bound = tokens.issue(people.bob.user, "laptop", ["read"], people.demo)
    _token, free = tokens.issue(people.bob.user, "laptop", ["read"])
    members.remove(people.alice, people.demo, "bob")
    refused(bound)
    tokens.authenticate(free)


def test_last_use_is_written_once_a_minute(people: People, django_assert_num_queries: Any) -> None:
    token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    tokens.authenticate(secret)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    with django_assert_num_queries(1):
        tokens.authenticate(secret)
    APIToken.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(minutes=2))
    tokens.authenticate(secret)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("scopes", {"scopes": []}),
        ("scopes", {"scopes": ["everything"]}),
        ("scopes", {"scopes": ["admin"]}),
        ("days", {"days": 0}),
        ("days", {"days": 367}),
        ("name", {"name": "  "}),
        ("tenant", {"tenant_slug": "second"}),
        ("tenant", {"tenant_slug": "nothing"}),
    ],
)
def test_a_bad_token_is_refused_at_its_field(people: People, field: str, changed: dict[str, Any]) -> None:
    wanted: dict[str, Any] = {"name": "laptop", "scopes": ["read"], "tenant_slug": None, "days": 7} | changed
    with pytest.raises(Invalid) as refusal:
        tokens.create(people.alice, **wanted)
    assert list(refusal.value.fields) == [field]
    assert not APIToken.objects.exists()


def test_a_token_makes_only_tokens_that_reach_no_further(people: People) -> None:
    parent, _secret = tokens.issue(people.alice.user, "laptop", ["read", "jobs"], people.demo, 10)
    script = Actor(people.alice.user, parent)
    child, _secret = tokens.create(script, "child", ["read"], "demo", 30)
    assert child.tenant == people.demo
    assert child.expires_at == parent.expires_at
    for scopes, tenant in ((["workspaces"], "demo"), (["read"], None)):
        with pytest.raises(NotAllowed):
            tokens.create(script, "child", scopes, tenant, 5)


def test_nobody_has_more_than_a_hundred_tokens(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_PER_PERSON", 2)
    first, _secret = tokens.create(people.bob, "1", ["read"], None, 1)
    tokens.create(people.bob, "2", ["read"], None, 1)
    with pytest.raises(Conflict):
        tokens.create(people.bob, "3", ["read"], None, 1)
    tokens.revoke(people.bob, first.pk)
    tokens.create(people.bob, "3", ["read"], None, 1)


def test_revoking_is_for_ones_own_and_leaves_a_trail(people: People) -> None:
    token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    with pytest.raises(NotThere):
        tokens.revoke(people.bob, token.pk)
    tokens.authenticate(secret)
    tokens.revoke(people.alice, token.pk)
    refused(secret)
    entry = AuditEntry.objects.get(action="token.revoke")
    assert (entry.actor, entry.target_id) == (people.alice.user, str(token.pk))


def test_a_bound_token_knows_only_the_tokens_of_its_tenant(people: People) -> None:
    Membership.objects.create(tenant=people.second, user=people.alice.user)
    bound, _secret = tokens.issue(people.alice.user, "demo", ["read", "jobs"], people.demo)
    other, _secret = tokens.issue(people.alice.user, "second", ["read"], people.second)
    script = Actor(people.alice.user, bound)
    assert list(tokens.usable(script)) == [bound]
    with pytest.raises(NotThere):
        tokens.revoke(script, other.pk)


def test_no_secret_in_a_repr_or_a_log(people: People, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, secret = tokens.issue(people.alice.user, "laptop", ["read"])
    actor = Actor(people.alice.user, tokens.authenticate(secret))
    body = secret.split("_")[2]
    assert body not in f"{token!r} {actor!r} {caplog.text}"
    assert token.digest not in f"{token!r} {actor!r}"
