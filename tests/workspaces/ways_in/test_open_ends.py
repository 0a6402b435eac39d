"""Ends of all that is open when a right ends: sockets, downloads, uploads and logs through Berth end within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from django.contrib.sessions.models import Session
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import sessions, tickets, tokens
from accounts.models import APIToken, Role, Scope
from tests.cast import Cast
from tests.shared.clients import api
from tests.shared.log_rows import make_stream, write
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.gateway_stage import Stage, staged
from tests.workspaces.ways_in.opened import Opened, at_jupyter
from workloads.logs import text
from workspaces import receivers
from workspaces.gateway import guests
from workspaces.gateway.scripts import hand_out
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


def begin_log(workspace: Workspace) -> None:
    write(make_stream(workspace.tenant, workspace.pk, "workspace"), ["began"])


@pytest.fixture
async def stage(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Stage on which everything is looked at more often than in earnest."""
    monkeypatch.setattr(guests, "TRUSTED_SECONDS", 0.05)
    monkeypatch.setattr(guests, "STREAM_RECHECK_SECONDS", 0.1)
    monkeypatch.setattr(text, "RECHECK_SECONDS", 0.1)
    # As in the web process: a request keeps no connection.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    async with staged(cast) as stage:
        await in_thread(begin_log)(stage.workspace)
        yield stage


async def by_session(stage: Stage, stack: AsyncExitStack) -> Opened:
    """Open everything by bob's browser."""
    opened = Opened(stage, stack)
    client = Client(headers={"Host": f"localhost:{stage.port}"})
    await in_thread(client.force_login)(stage.cast.bob.user)
    link = (await in_thread(client.get)(f"/workspaces/{stage.workspace.pk}/open/"))["Location"]
    async with stage.browser.get(link, allow_redirects=False):
        pass
    await at_jupyter(opened, stage, {})
    headers = opened.of_session(client)
    story = f"/ws/workspaces/{stage.workspace.pk}/"
    await opened.websocket("story", opened.at_berth(story), headers)
    ticket = (await in_thread(client.post)("/api/v1/ws-tickets/", content_type="application/json")).json()[
        "ticket"
    ]
    await opened.websocket("story by a ticket", opened.at_berth(f"{story}?token={ticket}"), {})
    path = f"/api/v1/workspaces/{stage.workspace.pk}/logs/?follow=true"
    await opened.stream("log", opened.at_berth(path), headers)
    return opened


async def by_token(stage: Stage, stack: AsyncExitStack) -> tuple[Opened, APIToken]:
    """Open everything by a script of bob's."""
    opened = Opened(stage, stack)
    token, secret = await in_thread(tokens.issue)(
        stage.cast.bob.user, "script", [Scope.READ, Scope.WORKSPACES]
    )
    actor = Actor(stage.cast.bob.user, token)
    _, given, _ = await in_thread(hand_out)(actor, stage.workspace, f"localhost:{stage.port}")
    await at_jupyter(opened, stage, {"Authorization": f"token {given}"})
    ticket, _ = await in_thread(tickets.issue)(actor)
    await opened.websocket(
        "story", opened.at_berth(f"/ws/workspaces/{stage.workspace.pk}/?token={ticket}"), {}
    )
    path = f"/api/v1/workspaces/{stage.workspace.pk}/logs/?follow=true"
    await opened.stream("log", opened.at_berth(path), {"Authorization": f"Bearer {secret}"})
    return opened, token


# --- By a session


def deactivate(cast: Cast) -> None:
    members.set_active(cast.admin, cast.bob.user, active=False)


def remove(cast: Cast) -> None:
    members.remove(cast.alice, cast.demo, "bob")


def sign_out_everywhere(cast: Cast) -> None:
    sessions.sign_out_everywhere(cast.bob)


@pytest.mark.parametrize("loses", [deactivate, remove, sign_out_everywhere], ids=lambda loses: loses.__name__)
async def test_what_a_browser_has_open_ends(stage: Stage, loses: Callable[[Cast], None]) -> None:
    async with AsyncExitStack() as stack:
        opened = await by_session(stage, stack)
        await in_thread(loses)(stage.cast)
        await opened.have_ended()


@pytest.mark.slow
async def test_who_becomes_a_viewer_keeps_what_viewers_see(stage: Stage) -> None:
    async with AsyncExitStack() as stack:
        opened = await by_session(stage, stack)
        await in_thread(members.set_role)(stage.cast.alice, stage.cast.demo, "bob", Role.VIEWER)
        await opened.have_ended("kernel", "download", "upload", "log")
        stories = asyncio.gather(*opened.ends.values())
        await asyncio.sleep(0.3)
        assert not stories.done()
        stories.cancel()


@pytest.mark.slow
async def test_what_a_session_opened_ends_with_it(stage: Stage) -> None:
    """A session that only expires says nothing: sockets ask once in a minute, the rest every few seconds."""
    async with AsyncExitStack() as stack:
        opened = await by_session(stage, stack)
        await in_thread(Session.objects.all().delete)()
        await opened.have_ended("download", "upload", "log")
        for end in opened.ends.values():
            end.close()  # type: ignore[attr-defined]


# --- By a token


def revoke(token: APIToken) -> None:
    tokens.revoke(Actor(token.user), token.pk)


def expire(token: APIToken) -> None:
    """Let it expire, and the next tick come."""
    APIToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    receivers.end_handed_out()


@pytest.mark.parametrize("ends", [revoke, expire], ids=lambda ends: ends.__name__)
async def test_what_a_script_has_open_ends_with_its_token(
    stage: Stage, ends: Callable[[APIToken], None]
) -> None:
    async with AsyncExitStack() as stack:
        opened, token = await by_token(stage, stack)
        await in_thread(ends)(token)
        await opened.have_ended()


def test_a_followed_log_keeps_no_connection_to_the_database(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web process has twelve, and each reader may stay for ten minutes."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    workspace = make_workspace(cast, cast.bob)
    begin_log(workspace)
    script = api(cast.bob)
    connection.close()
    answer = script.get(f"/api/v1/workspaces/{workspace.pk}/logs/?follow=true")
    assert (answer.status_code, connection.connection) == (200, None)
    answer.close()
