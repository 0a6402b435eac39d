"""Access matrix of websockets: all addresses of the routing, opened by everybody. A missing address fails.

Outcomes are `open` or the close code, in the order of WHO. Nobody else gets in: not signed in, deactivated, or with a
ticket that is too old, or whose token has expired or was revoked since, or has another scope. A page of another site is
refused before anything else. What is open ends when the right does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import sessions, tickets, tokens
from accounts.live import publish
from accounts.models import APIToken, Scope, SocketTicket, User
from clusters.models import Cluster
from monitoring.intake import tokens as agents
from portal.routing import websocket_urlpatterns
from tests.portal.isolation import NOWHERE, PEOPLE, Stage, make_stage
from tests.shared.sockets import Socket, headers_of, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

EVERYBODY = "open open open open open open open open"
SOCKETS = {  # own viewer member owner admin stranger reader elsewhere
    "ws/workspaces/": EVERYBODY,
    "ws/workspaces/<uuid:id>/": "open open open open open 4404 open 4404",
    "ws/workspaces/<uuid:id>/logs/": "open 4404 4404 open open 4404 open 4404",
    "ws/workspaces/<uuid:id>/metrics/": "open open open open open 4404 open 4404",
    "ws/jobs/": EVERYBODY,
    "ws/jobs/<uuid:id>/": "open open open open open 4404 open 4404",
    "ws/jobs/<uuid:id>/logs/": "open 4404 4404 open open 4404 open 4404",
    "ws/notices/": EVERYBODY.removesuffix("open") + "4404",  # spans a person's tenants: no bound token
    "ws/gpus/": EVERYBODY,
    "ws/alerts/": EVERYBODY,  # it only wakes a page, which loads what its person may see
    "": "4404 4404 4404 4404 4404 4404 4404 4404",  # any other address
}
# Callers who get in nowhere.
REFUSED = {
    "anonymous": 4401, "deactivated": 4401, "signed out": 4401, "token expired": 4401, "token revoked": 4401,
    "ticket too old": 4408, "secret of a token": 4401, "agent": 4401, "scope workspaces": 4404, "scope jobs": 4404,
}  # fmt: skip
ROUTES = [str(route.pattern) for route in websocket_urlpatterns]


@pytest.fixture
def stage() -> Stage:
    return make_stage()


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


SCRIPT = [(b"host", b"testserver")]


def by_ticket(actor: Actor, tenant: Any = None, scope: Scope = Scope.READ) -> tuple[str, APIToken]:
    token, _secret = tokens.issue(actor.user, "test", [scope], tenant, 1)
    return tickets.issue(Actor(actor.user, token))[0], token


def everybody(stage: Stage, path: str) -> list[Socket]:
    """Return the sockets in the order of the table."""
    bob = stage.people["own"]
    by_session = [Socket(path, headers_of(stage.people[who])) for who in PEOPLE]
    reader, elsewhere = by_ticket(bob)[0], by_ticket(bob, stage.second)[0]
    return [*by_session, *(Socket(f"{path}?token={ticket}", SCRIPT) for ticket in (reader, elsewhere))]


def refused(stage: Stage, path: str) -> dict[str, Socket]:
    """Return the sockets of REFUSED."""
    bob = stage.people["own"]
    long_ago = timezone.now() - timedelta(seconds=1)
    expired, token = by_ticket(bob)
    APIToken.objects.filter(pk=token.pk).update(expires_at=long_ago)
    revoked, token = by_ticket(bob)
    tokens.revoke(bob, token.pk)
    old, token = by_ticket(bob)
    SocketTicket.objects.filter(token=token).update(expires_at=long_ago)
    given = {
        "token expired": expired,
        "token revoked": revoked,
        "ticket too old": old,
        "secret of a token": tokens.issue(bob.user, "secret", [Scope.READ])[1],
        "agent": agents.issue(None, Cluster.objects.get(), f"node-{uuid4()}")[1],
        "scope workspaces": by_ticket(bob, scope=Scope.WORKSPACES)[0],
        "scope jobs": by_ticket(bob, scope=Scope.JOBS)[0],
    }
    deactivated, signed_out = (
        Actor(User.objects.create_user(f"eve-{uuid4()}", is_staff=True)) for _ in range(2)
    )
    by_session = {
        "anonymous": headers_of(None),
        "deactivated": headers_of(deactivated),
        "signed out": headers_of(signed_out),
    }
    members.set_active(stage.people["admin"], deactivated.user, active=False)
    sessions.sign_out_everywhere(signed_out)
    sockets = {name: Socket(f"{path}?token={ticket}", SCRIPT) for name, ticket in given.items()}
    return sockets | {name: Socket(path, headers) for name, headers in by_session.items()}


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
    nobody = await in_thread(refused)(stage, path_of(stage, route))
    codes = [code for code, _frame in await outcomes(list(nobody.values()))]
    assert dict(zip(nobody, codes, strict=True)) == {name: str(code) for name, code in REFUSED.items()}


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


# --- What is open when the right ends


def deactivate(stage: Stage, token: APIToken) -> None:
    members.set_active(stage.people["admin"], stage.people["own"].user, active=False)


def revoke(stage: Stage, token: APIToken) -> None:
    tokens.revoke(stage.people["own"], token.pk)


def narrow(stage: Stage, token: APIToken) -> None:
    """Take the scope from the token, and let something wake the sockets."""
    APIToken.objects.filter(pk=token.pk).update(scopes=[Scope.WORKSPACES])
    publish(f"user.{token.user_id}", {"type": "access.changed"})


@pytest.mark.parametrize(
    ("ends", "code", "reaches_sessions"),
    [(deactivate, 4401, True), (revoke, 4401, False), (narrow, 4404, False)],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_every_open_socket_ends_with_the_right_that_opened_it(
    stage: Stage, ends: Callable[[Stage, APIToken], None], code: int, reaches_sessions: bool
) -> None:
    bob = stage.people["own"]
    token, _secret = await in_thread(tokens.issue)(bob.user, "test", [Scope.READ])
    headers = await in_thread(headers_of)(bob)
    by_token, by_session = list[Socket](), list[Socket]()
    for route in ROUTES[:-1]:
        ticket, _expires = await in_thread(tickets.issue)(Actor(bob.user, token))
        by_token.append(Socket(f"{path_of(stage, route)}?token={ticket}", SCRIPT))
        by_session.append(Socket(path_of(stage, route), headers))
    for socket in (*by_token, *by_session):
        assert await socket.opens()
        await socket.hear()
    await in_thread(ends)(stage, token)
    ended = [*by_token, *(by_session if reaches_sessions else ())]
    assert {await socket.closed_with() for socket in ended} == {code}
    for socket in (*by_token, *by_session):
        await socket.leave()


async def test_the_sockets_of_a_deleted_person_end(stage: Stage) -> None:
    eve = Actor(await in_thread(User.objects.create_user)("eve"))
    headers = await in_thread(headers_of)(eve)
    opened = [
        Socket(path_of(stage, route), headers) for route in ("ws/workspaces/", "ws/notices/", "ws/gpus/")
    ]
    for socket in opened:
        assert await socket.opens()
        await socket.hear()
    await in_thread(members.delete_person)(stage.people["admin"], eve.user)
    assert {await socket.closed_with() for socket in opened} == {4401}
    for socket in opened:
        await socket.leave()


def test_the_table_names_every_route_and_nothing_that_is_gone() -> None:
    assert set(SOCKETS) == set(ROUTES)


def path_of(stage: Stage, route: str, id: str = "") -> str:
    return "/" + re.sub(
        r"<[^>]+>", id or stage.ids_for(route.removeprefix("ws/"))["id"], route or "ws/nothing/"
    )
