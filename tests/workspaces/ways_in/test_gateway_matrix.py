"""Access matrix of the gateway: each kind of address on a workspace's host, with every kind of credential.

Codes are in the order of ASKED. A caller without a right to this workspace never reaches its Jupyter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.access import Actor
from accounts.credentials import sessions, tokens
from accounts.models import APIToken, Membership, Role, Scope, User
from monitoring.intake import tokens as agents
from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.gateway_stage import Stage, staged
from workspaces.gateway import guests, passes
from workspaces.gateway.door import cookie_name
from workspaces.gateway.hosts import ENTER, Site
from workspaces.models import Share, Workspace
from workspaces.state import jupyter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]

ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "page": ("GET", "/lab", {"headers": {"Accept": "text/html"}}),
    "API": ("GET", "/api/kernels", {}),
    "upload": ("PUT", "/api/contents/x", {"data": b"x" * 100_000}),
    "program behind Jupyter": ("POST", "/proxy/8080/run", {"data": b"x"}),
    "Berth's own": ("GET", "/_berth/status", {}),
    "way in": ("GET", f"{ENTER}?ticket=guessed", {}),
    "of the portal": ("GET", "/api/v1/me/", {}),
    "websocket": ("", "/socket", {}),
}
LET_IN = "200 200 200 200 404 303 200 101"
REFUSED = "303 401 401 401 404 303 401 403"


@pytest.fixture
async def stage(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(
        guests, "TRUSTED_SECONDS", 0.0
    )  # how long a look holds is tested in test_gateway_guests.py
    async with staged(cast) as stage:
        yield stage


async def answers(stage: Stage, headers: dict[str, str]) -> str:
    """Return the codes of all addresses. No redirect of a stranger has a cookie, or leads elsewhere than to Berth."""
    stage.browser.cookie_jar.clear()
    codes = []
    for method, path, options in ASKED.values():
        sent = options.get("headers", {}) | headers
        if not method:
            codes.append(await handshake(stage, path, sent))
            continue
        asked = stage.browser.request(
            method, stage.at(path), **(options | {"headers": sent}), allow_redirects=False
        )
        async with asked as answer:
            codes.append(answer.status)
            if answer.status == 303:
                assert answer.headers["Location"].startswith(f"http://testserver:{stage.port}/workspaces/")
                assert "Set-Cookie" not in answer.headers
    return " ".join(str(code) for code in codes)


async def handshake(stage: Stage, path: str, headers: dict[str, str]) -> int:
    try:
        async with stage.browser.ws_connect(stage.at(path), headers=headers):
            return 101
    except aiohttp.WSServerHandshakeError as refusal:
        return refusal.status


def session_of(actor: Actor) -> str:
    client = Client()
    client.force_login(actor.user)
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def pass_to(workspace: Workspace, session: str) -> dict[str, str]:
    """Return the cookie of a pass that this session got."""
    site = Site(workspace.pk)
    entered = passes.enter(passes.hand_over(session, workspace.owner, site), site)
    assert entered is not None
    return {"Cookie": f"{cookie_name()}={entered[0]}"}


def colleague(stage: Stage, role: str) -> str:
    """Return the session of a new member of the tenant, with whom the workspace is shared if there is a role."""
    member = Actor(User.objects.create_user(f"sharer-{role}"))
    Membership.objects.create(tenant=stage.cast.demo, user=member.user, role=Role.MEMBER)
    if role:
        owner = stage.cast.bob.user
        Share.objects.create(workspace=stage.workspace, user=member.user, role=role, given_by=owner)
    return session_of(member)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def credentials_that_let_in(stage: Stage) -> dict[str, dict[str, str]]:
    workspace = stage.workspace
    return {
        "pass": pass_to(workspace, session_of(stage.cast.bob)),
        "pass of a colleague who may work in it": pass_to(workspace, colleague(stage, "work")),
        "Jupyter's token": bearer(jupyter.token(workspace)),
        "Jupyter's token, as Jupyter spells it": {"Authorization": f"token {jupyter.token(workspace)}"},
    }


def credentials_that_do_not(stage: Stage) -> dict[str, dict[str, str]]:
    cast, workspace = stage.cast, stage.workspace
    other = make_workspace(cast, cast.bob, name="exp-2", host="127.0.0.1")
    foreign = make_workspace(cast, cast.carol, host="127.0.0.1")
    session = session_of(cast.bob)
    ticket = passes.hand_over(session, cast.bob.user, Site(workspace.pk))
    earlier = Workspace.objects.get(pk=workspace.pk)
    earlier.run = uuid4()
    return {
        "nothing": {},
        "session of the portal": {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"},
        "ticket that was not exchanged": {"Cookie": f"{cookie_name()}={ticket}"},
        "pass to another workspace": pass_to(other, session),
        "pass of another tenant": pass_to(foreign, session_of(cast.carol)),
        # The portal issues none to them: these stand for a row that somebody made.
        **{f"pass of {name}": pass_to(workspace, session_of(getattr(cast, name))) for name in OTHERS},
        "pass of a colleague who may look": pass_to(workspace, colleague(stage, "look")),
        "pass of a colleague who was not named": pass_to(workspace, colleague(stage, "")),
        "token of agents": bearer(agents.issue(None, cast.cluster, "node")[1]),
        "gateway's own token": bearer(jupyter.gateway_token(workspace)),
        "ticket of Jupyter": bearer(jupyter.ticket(workspace)),
        "Jupyter's token of an earlier run": bearer(jupyter.token(earlier)),
        "Jupyter's token of another workspace": bearer(jupyter.token(other)),
        "Jupyter's token of another tenant": bearer(jupyter.token(foreign)),
        **api_tokens(cast),
    }


OTHERS = ("alice", "victor", "carol", "admin")


def api_tokens(cast: Cast) -> dict[str, dict[str, str]]:
    """Return tokens of Berth's API, which open no workspace: each scope, expired, revoked."""
    found = {}
    for scope in Scope:
        actor = cast.admin if scope == Scope.ADMIN else cast.bob
        found[f"API token: {scope}"] = bearer(tokens.issue(actor.user, scope, [scope])[1])
    expired, secret = tokens.issue(cast.bob.user, "expired", [Scope.WORKSPACES])
    APIToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    revoked, other_secret = tokens.issue(cast.bob.user, "revoked", [Scope.WORKSPACES])
    tokens.revoke(cast.bob, revoked.pk)
    return found | {"API token: expired": bearer(secret), "API token: revoked": bearer(other_secret)}


def credentials_that_ended(stage: Stage) -> dict[str, dict[str, str]]:
    """Return what let bob in until a moment ago."""
    cast, workspace = stage.cast, stage.workspace
    known = bearer(jupyter.token(workspace))
    its_pass = pass_to(workspace, session_of(cast.bob))
    sessions.sign_out_everywhere(cast.bob)
    return {"pass of a session that ended": its_pass, "Jupyter's token that was replaced": known}


async def test_a_workspaces_host_lets_in_its_owner_and_who_may_work_in_it_alone(stage: Stage) -> None:
    for name, headers in (await in_thread(credentials_that_let_in)(stage)).items():
        assert await answers(stage, headers) == LET_IN, name
    for name, headers in (await in_thread(credentials_that_do_not)(stage)).items():
        assert await answers(stage, headers) == REFUSED, name
    for name, headers in (await in_thread(credentials_that_ended)(stage)).items():
        assert await answers(stage, headers) == REFUSED, name
