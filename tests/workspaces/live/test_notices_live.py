"""Websocket of notices: a notice is sent once, in the person's language, and to nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from accounts.credentials import tickets, tokens
from accounts.models import Scope
from accounts.notices import inbox
from accounts.notices.models import Notice
from tests.cast import Cast
from tests.shared.sockets import in_thread, socket
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/ws/notices/"


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


def make(cast: Cast) -> Workspace:
    workspace = make_workspace(cast, cast.bob)
    Notice.objects.all().delete()
    return workspace


def fail(workspace: Workspace) -> None:
    with changing(workspace.pk) as row:
        add_event(row, "given_up")


def of_type(kind: str) -> Any:
    return lambda frame: frame["type"] == kind


async def test_its_person_hears_of_it_and_nobody_else(cast: Cast) -> None:
    workspace = await in_thread(make)(cast)
    async with socket(ADDRESS, cast.bob) as bob, socket(ADDRESS, cast.alice) as alice:
        assert await bob.hear() == {"type": "unread", "unread": 0}
        assert await alice.hear() == {"type": "unread", "unread": 0}
        await in_thread(fail)(workspace)
        *_, told = await bob.hear_until(of_type("notice"))
        assert told["notice"]["title"] == "“exp-1” failed"
        assert told["notice"]["path"] == f"/workspaces/{workspace.pk}/"
        assert await bob.hear() == {"type": "unread", "unread": 1}
        await in_thread(inbox.read_all)(cast.bob.user)
        assert await bob.hear() == {"type": "unread", "unread": 0}
        await in_thread(fail)(await in_thread(make_workspace)(cast, cast.alice, name="hers"))
        heard = await alice.hear_until(lambda frame: frame.get("notice", {}).get("title") == "“hers” failed")
        assert all("hers" in frame["notice"]["title"] for frame in heard if frame["type"] == "notice")


async def test_who_comes_late_hears_what_is_fresh_and_only_counts_the_rest(cast: Cast) -> None:
    workspace = await in_thread(make)(cast)
    await in_thread(fail)(workspace)
    async with socket(ADDRESS, cast.bob) as bob:
        assert (await bob.hear())["type"] == "notice"
    old = timezone.now() - inbox.FRESH - timedelta(minutes=1)
    await in_thread(Notice.objects.update)(at=old)
    async with socket(ADDRESS, cast.bob) as bob:
        assert await bob.hear() == {"type": "unread", "unread": 1}


async def test_a_token_for_one_tenant_is_not_the_whole_person(cast: Cast) -> None:
    def ticket() -> str:
        token, _secret = tokens.issue(cast.bob.user, "script", [Scope.READ], cast.demo)
        return tickets.issue(type(cast.bob)(cast.bob.user, token))[0]

    async with socket(f"{ADDRESS}?token={await in_thread(ticket)()}") as script:
        assert await script.closed_with() == 4404
