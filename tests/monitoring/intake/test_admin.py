"""Admin page of tokens: the secret is shown once, and a token can be revoked."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.errors import NotSignedIn
from monitoring.intake import tokens
from monitoring.models import AgentToken
from tests.admin_forms import confirm, preview, text_of
from tests.cast import Cast
from tests.shared.clients import ask, browser, script

pytestmark = pytest.mark.django_db
LIST = "/admin/monitoring/agenttoken/"


@pytest.fixture
def admin(cast: Cast) -> Client:
    return browser(cast.admin)


def test_issues_a_token_whose_secret_is_shown_this_once(cast: Cast, admin: Client) -> None:
    answer = admin.post(f"{LIST}add/", {"cluster": str(cast.cluster.pk), "name": "nodes"})
    (secret,) = re.findall(r"bra_\w+", answer.content.decode())
    token = tokens.authenticate(secret)
    assert (token.cluster, token.name, token.created_by) == (cast.cluster, "nodes", cast.admin.user)
    assert "no-store" in answer.headers["Cache-Control"]
    for page in (LIST, f"{LIST}{token.pk}/change/"):
        shown = text_of(admin.get(page))
        assert "nodes" in shown
        assert secret not in shown
        assert token.digest not in shown


def test_refuses_a_name_that_says_nothing(cast: Cast, admin: Client) -> None:
    admin.post(f"{LIST}add/", {"cluster": str(cast.cluster.pk), "name": "  "})
    assert AgentToken.objects.count() == 0


def test_issues_and_revokes_over_rest(cast: Cast) -> None:
    client = script(cast.admin)
    made = ask(client, "POST", "agent-tokens/", {"cluster": "main", "name": "nodes"})
    assert tokens.authenticate(made.json()["secret"]).cluster == cast.cluster
    [line] = ask(client, "GET", "agent-tokens/").json()["results"]
    assert (line["id"], "secret" in line) == (made.json()["id"], False)
    assert ask(client, "DELETE", f"agent-tokens/{line['id']}/").status_code == 204
    with pytest.raises(NotSignedIn):
        tokens.authenticate(made.json()["secret"])


def test_revokes_what_was_confirmed(cast: Cast, admin: Client) -> None:
    token, secret = tokens.issue(cast.admin, cast.cluster, "nodes")
    page = preview(admin, LIST, "revoke", token)
    assert "It was never used." in text_of(page)
    confirm(admin, LIST, page)
    with pytest.raises(NotSignedIn):
        tokens.authenticate(secret)
