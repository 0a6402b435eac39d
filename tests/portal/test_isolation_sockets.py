"""Access matrix of websockets: all addresses of the routing, opened by everybody. A missing address fails.

Outcomes are `open` or the close code, in the order of WHO; then for a caller who is not signed in, for a ticket whose
token has expired since, and for a ticket that is too old. A page of another site is refused before anything else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from accounts.access import Actor
from accounts.credentials import tickets, tokens
from accounts.models import APIToken, Scope, SocketTicket
from portal.routing import websocket_urlpatterns
from tests.portal.isolation import NOWHERE, PEOPLE, Stage, make_stage
from tests.shared.sockets import Socket, headers_of, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

EVERYBODY = "open open open open open open open open 4401 4401 4408"
SOCKETS = {  # own viewer member owner admin stranger reader elsewhere; anonymous, expired token, old ticket
    "ws/workspaces/": EVERYBODY,
    "ws/workspaces/<uuid:workspace_id>/": "open open open open open 4404 open 4404 4401 4401 4408",
    "ws/workspaces/<uuid:workspace_id>/logs/": "open 4404 4404 open open 4404 open 4404 4401 4401 4408",
    "ws/workspaces/<uuid:workspace_id>/metrics/": "open open open open open 4404 open 4404 4401 4401 4408",
    "ws/notices/": EVERYBODY.replace("open 4401", "4404 4401", 1),  # spans a person's tenants: no bound token
    "ws/gpus/": EVERYBODY,
    "": "4404 4404 4404 4404 4404 4404 4404 4404 4401 4401 4408",  # any other address
}
ROUTES = [str(route.pattern) for route in websocket_urlpatterns]


@pytest.fixture
def stage() -> Stage:
    return make_stage()


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


def by_ticket(actor: Actor, tenant: Any = None) -> tuple[str, APIToken]:
    token, _secret = tokens.issue(actor.user, "test", [Scope.READ], tenant, 1)
    return tickets.issue(Actor(actor.user, token))[0], token


def everybody(stage: Stage, path: str) -> list[Socket]:
    """Return the sockets in the order of the table."""
    bob = stage.people["own"]
    long_ago = timezone.now() - timedelta(seconds=1)
    script = [(b"host", b"testserver")]
    by_session = [Socket(path, headers_of(stage.people[who])) for who in PEOPLE]
    reader, elsewhere = by_ticket(bob)[0], by_ticket(bob, stage.second)[0]
    expired, token = by_ticket(bob)
    APIToken.objects.filter(pk=token.pk).update(expires_at=long_ago)
    old, token = by_ticket(bob)
    SocketTicket.objects.filter(token=token).update(expires_at=long_ago)
    by_tickets = [Socket(f"{path}?token={ticket}", script) for ticket in (reader, elsewhere, expired, old)]
    return [*by_session, *by_tickets[:2], Socket(path, headers_of(None)), *by_tickets[2:]]


async def outcome(socket: Socket) -> tuple[str, Any]:
    """Return `open` or the close code, and the first frame."""
    assert await socket.opens()
    frame = await socket.wire.receive_output(10)
    await socket.leave()
    if frame["type"] == "websocket.close":
        return str(frame["code"]), frame
    return "open", frame


async def outcomes(sockets: list[Socket]) -> list[tuple[str, Any]]:
    return await asyncio.gather(*(outcome(socket) for socket in sockets))


@pytest.mark.parametrize("route", ROUTES)
async def test_a_socket_answers_everybody_as_the_table_says(stage: Stage, route: str) -> None:
    found = await outcomes(await in_thread(everybody)(stage, path_of(stage, route)))
    assert " ".join(code for code, _frame in found) == SOCKETS[route]


@pytest.mark.parametrize("route", [route for route in ROUTES if "<" in route])
async def test_what_is_foreign_is_refused_with_the_bytes_of_what_is_not_there(
    stage: Stage, route: str
) -> None:
    headers = await in_thread(headers_of)(stage.people["stranger"])
    paths = path_of(stage, route), path_of(stage, route, NOWHERE["id"])
    there, nowhere = await outcomes([Socket(path, headers) for path in paths])
    assert there == nowhere
    assert there[0] == "4404"


@pytest.mark.parametrize("route", ROUTES)
async def test_a_page_of_another_site_is_refused_before_it_is_open(stage: Stage, route: str) -> None:
    headers = await in_thread(headers_of)(stage.people["own"], "https://elsewhere.example")
    assert not await Socket(path_of(stage, route), headers).opens()


def test_the_table_names_every_route_and_nothing_that_is_gone() -> None:
    assert set(SOCKETS) == set(ROUTES)


def path_of(stage: Stage, route: str, id: str = "") -> str:
    return "/" + re.sub(r"<[^>]+>", id or stage.ids_for("")["id"], route or "ws/nothing/")
