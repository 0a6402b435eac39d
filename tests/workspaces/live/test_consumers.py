"""Websockets: access, messages, and the end of access."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.access import Actor
from accounts.credentials import sessions, tickets, tokens
from accounts.models import APIToken, Scope, SocketTicket
from accounts.signals import send_access_changed
from quotas import admission
from quotas.forecasts import update_forecasts
from quotas.models import Claim, Pool
from quotas.signals import claim_released
from tests.cast import Cast
from tests.shared.log_rows import NOON_NS, make_stream, write
from tests.shared.sockets import Socket, headers_of, in_thread, socket
from tests.shared.workspace_rows import make_many, make_workspace
from workloads.live import following, reads, sockets
from workloads.logs.intake import SECOND
from workloads.logs.models import LogStream
from workspaces.live import consumers
from workspaces.models import Event, Phase, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db(transaction=True)

HOME = "/ws/workspaces/"
NOBODY = "/ws/workspaces/00000000-0000-4000-8000-000000000000/"


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


def one(workspace: Workspace, query: str = "") -> str:
    return f"/ws/workspaces/{workspace.pk}/{query}"


def happen(workspace: Workspace, count: int = 1) -> None:
    for _ in range(count):
        with changing(workspace.pk) as row:
            add_event(row, "stopping")


def happen_in_a_thread(workspace: Workspace, count: int) -> None:
    happen(workspace, count)
    connection.close()


# --- Who gets in


@pytest.mark.parametrize(
    "path", [HOME, NOBODY, f"{NOBODY}logs/", "/ws/nothing/", "/ws/gpus/", "/ws/notices/"]
)
async def test_who_is_not_signed_in_is_closed_with_4401(cast: Cast, path: str) -> None:
    async with socket(path) as communicator:
        assert await communicator.closed_with() == 4401


async def test_a_stranger_is_closed_with_4404_as_for_what_does_not_exist(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    for path in (one(workspace), one(workspace, "logs/"), NOBODY, f"{NOBODY}logs/", "/ws/nothing/"):
        async with socket(path, cast.carol) as communicator:
            assert await communicator.closed_with() == 4404


async def test_logs_are_not_for_viewers_and_other_members(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.alice)
    for other in (cast.victor, cast.bob):
        async with socket(one(workspace, "logs/"), other) as communicator:
            assert await communicator.closed_with() == 4404


@pytest.mark.parametrize("origin", ["https://evil.example", "http://testserver:8888"])
async def test_a_foreign_origin_is_refused_before_it_is_open(cast: Cast, origin: str) -> None:
    headers = await in_thread(headers_of)(cast.bob, origin)
    assert not await Socket(HOME, headers).opens()


async def test_scripts_need_no_origin(cast: Cast) -> None:
    ticket, _expires = await in_thread(tickets.issue)(cast.bob)
    communicator = Socket(f"{HOME}?token={ticket}", [(b"host", b"testserver")])
    assert await communicator.opens()
    assert (await communicator.hear())["type"] == "snapshot"
    await communicator.leave()


async def test_a_ticket_opens_one_socket(cast: Cast) -> None:
    await in_thread(make_workspace)(cast, cast.bob)
    ticket, _expires = await in_thread(tickets.issue)(cast.bob)
    async with socket(f"{HOME}?token={ticket}") as communicator:
        assert (await communicator.hear())["type"] == "snapshot"
    async with socket(f"{HOME}?token={ticket}") as communicator:
        assert await communicator.closed_with() == 4401


async def test_an_expired_ticket_is_closed_with_4408(cast: Cast) -> None:
    ticket, _expires = await in_thread(tickets.issue)(cast.bob)
    await in_thread(SocketTicket.objects.update)(expires_at=timezone.now())
    async with socket(f"{HOME}?token={ticket}") as communicator:
        assert await communicator.closed_with() == 4408


async def test_a_ticket_of_a_bound_token_shows_that_tenant_alone(cast: Cast) -> None:
    for actor, name in ((cast.bob, "of-demo"), (cast.carol, "of-second")):
        await in_thread(make_workspace)(cast, actor, name=name)
    token, _secret = await in_thread(tokens.issue)(
        cast.admin.user, "t", [Scope.READ, Scope.ADMIN], cast.second, 1
    )
    ticket, _expires = await in_thread(tickets.issue)(Actor(cast.admin.user, token))
    async with socket(f"{HOME}?token={ticket}") as communicator:
        names = [row["name"] for row in (await communicator.hear())["workspaces"]]
        assert names == ["of-second"]


# --- What is heard


async def test_the_list_tells_a_snapshot_then_each_change(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    foreign = await in_thread(make_workspace)(cast, cast.carol)
    async with socket(HOME, cast.bob) as communicator:
        first = await communicator.hear()
        assert (first["type"], first["truncated"]) == ("snapshot", False)
        assert [row["id"] for row in first["workspaces"]] == [str(workspace.pk)]
        await in_thread(happen)(foreign)
        await in_thread(happen)(workspace)
        changed = await communicator.hear()
        assert (changed["type"], changed["workspace"]["id"]) == ("workspace", str(workspace.pk))
        assert changed["workspace"]["last_event"] == 11
        await in_thread(happen)(foreign)
        await in_thread(happen)(workspace)
        assert (await communicator.hear())["workspace"]["last_event"] == 12  # and nothing in between


async def test_the_link_is_heard_by_its_own_person_alone(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    for actor, sees in ((cast.bob, True), (cast.alice, False), (cast.victor, False), (cast.admin, False)):
        async with socket(HOME, actor) as communicator:
            (row,) = (await communicator.hear())["workspaces"]
            assert bool(row["endpoints"]["jupyter"]) == sees
        async with socket(one(workspace, "?after=10"), actor) as communicator:
            assert bool((await communicator.hear())["workspace"]["endpoints"]["ssh"]) == sees


async def test_admins_hear_of_every_tenant(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.carol)
    async with socket(HOME, cast.admin) as communicator:
        await communicator.hear()
        await in_thread(happen)(workspace)
        assert (await communicator.hear())["workspace"]["tenant"] == "second"


@pytest.mark.parametrize(("query", "first"), [("", 1), ("?after=4", 5), ("?after=x", 1), ("?after=10", None)])
async def test_events_come_from_where_the_reader_left_off(cast: Cast, query: str, first: int | None) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace, query), cast.bob) as communicator:
        heard = await communicator.hear_until(lambda frame: frame["type"] == "workspace")
        ids = [frame["event"]["id"] for frame in heard[:-1]]
        assert ids == (list(range(first, 11)) if first else [])


async def test_events_have_no_gap_and_none_comes_twice_under_concurrent_writers(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    writers, each = 4, 10
    last = 10 + writers * each

    async def write() -> None:
        await asyncio.to_thread(happen_in_a_thread, workspace, each)

    async def read(after: int) -> list[int]:
        async with socket(one(workspace, f"?after={after}"), cast.bob) as communicator:
            heard = await communicator.hear_until(
                lambda frame: frame["type"] == "event" and frame["event"]["id"] == last
            )
            return [frame["event"]["id"] for frame in heard if frame["type"] == "event"]

    results = await asyncio.gather(read(0), read(10), *(write() for _ in range(writers)))
    assert results[0] == list(range(1, last + 1))
    assert results[1] == list(range(11, last + 1))


async def test_more_events_than_one_batch_come_in_order(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (following, reads):
        monkeypatch.setattr(module, "EVENTS_AT_ONCE", 3)
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace), cast.bob) as communicator:
        heard = await communicator.hear_until(lambda frame: frame["type"] == "workspace")
        assert [frame["event"]["id"] for frame in heard[:-1]] == list(range(1, 11))


async def test_after_a_gap_in_the_live_connection_rows_are_read_again(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with (
        socket(one(workspace, "?after=10"), cast.bob) as communicator,
        socket(HOME, cast.bob) as listing,
    ):
        assert (await communicator.hear())["type"] == "workspace"
        assert (await listing.hear())["type"] == "snapshot"
        await in_thread(write_unannounced)(workspace)
        layer = get_channel_layer()
        assert layer is not None
        for group in (f"workspace.{workspace.pk}", f"workspaces.{workspace.tenant_id}"):
            await layer.group_send(group, {"type": "resync"})
        assert (await communicator.hear())["event"]["id"] == 11
        assert (await listing.hear())["type"] == "snapshot"


def write_unannounced(workspace: Workspace) -> None:
    Event.objects.create(workspace=workspace, number=11, at=timezone.now(), code="stopping")
    Workspace.objects.filter(pk=workspace.pk).update(last_event=11)


async def test_many_changes_while_the_client_is_slow_are_told_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    may_send = asyncio.Event()
    may_send.set()
    send = consumers.WorkspaceList.send

    async def slowly(self: Any, *frames: Any, **others: Any) -> None:
        await may_send.wait()
        await send(self, *frames, **others)

    monkeypatch.setattr(consumers.WorkspaceList, "send", slowly)
    async with (
        socket(HOME, cast.bob) as communicator,
        socket(one(workspace, "?after=10"), cast.bob) as other,
    ):
        await communicator.hear()
        may_send.clear()
        await in_thread(happen)(workspace, 30)
        await other.hear_until(lambda frame: frame["type"] == "event" and frame["event"]["id"] == 40)
        may_send.set()
        told = await communicator.hear_until(lambda frame: frame["workspace"]["last_event"] == 40)
        assert len(told) <= 3


async def test_a_burst_of_changes_reaches_the_list_whole(cast: Cast) -> None:
    count = 150
    await in_thread(make_many)(cast, cast.bob, count, Phase.STOPPED)
    async with socket(HOME, cast.bob) as communicator:
        await communicator.hear()
        await in_thread(happen_to_all)()
        heard = {(await communicator.hear())["workspace"]["id"] for _ in range(count)}
        assert len(heard) == count


def happen_to_all() -> None:
    with transaction.atomic():
        for workspace in Workspace.objects.all():
            happen(workspace)


async def test_a_ping_comes_again_and_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "PING_SECONDS", 0.05)
    async with socket(HOME, cast.bob) as communicator:
        await communicator.hear_until(lambda frame: frame["type"] == "snapshot")
        assert [await communicator.hear() for _ in range(4)] == [{"type": "ping"}] * 4


# --- Waiting workspaces, and the map of GPUs


def two_wait(cast: Cast) -> list[Workspace]:
    """Let two workspaces wait for all of demo's GPUs, of which alice holds one."""
    make_workspace(cast, cast.alice)
    rows = [make_workspace(cast, cast.bob, Phase.WAITING, name=name) for name in ("first", "second")]
    for place, row in enumerate(rows):
        Claim.objects.filter(holder_id=row.pk).update(units=4, place=place)
    update_forecasts(cast.pool.pk)
    return rows


def the_first_goes(cast: Cast, rows: list[Workspace]) -> None:
    admission.release(Claim.objects.get(holder_id=rows[0].pk).pk, "withdrawn")
    Pool.objects.update(forecast_at=None)
    update_forecasts(cast.pool.pk)


async def test_a_new_place_in_the_queue_is_sent(cast: Cast) -> None:
    rows = await in_thread(two_wait)(cast)
    async with socket(f"/ws/workspaces/{rows[1].pk}/?after=99", cast.bob) as bobs:
        frame = await bobs.hear()
        assert frame["workspace"]["queue"]["position"] == 2
        assert frame["workspace"]["queue"]["gpus_ahead"] == 4
        assert frame["workspace"]["queue"]["estimated_to"]
        await in_thread(the_first_goes)(cast, rows)
        frame = await bobs.hear()
        assert frame["workspace"]["queue"]["position"] == 1


async def test_a_change_in_another_tenant_wakes_the_map_of_gpus_and_says_nothing_else(cast: Cast) -> None:
    async with socket("/ws/gpus/", cast.bob) as bobs:
        assert await bobs.hear() == {"type": "pools"}
        workspace = await in_thread(make_workspace)(cast, cast.carol)
        claim = await in_thread(Claim.objects.get)(holder_id=workspace.pk)
        await in_thread(claim_released.send_robust)(sender=Claim, claim=claim, successor=None)
        assert await bobs.hear() == {"type": "pools"}


# --- When access ends


async def test_who_is_taken_out_of_the_tenant_is_put_out_at_once(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace), cast.bob) as communicator, socket(HOME, cast.bob) as listing:
        await communicator.hear_until(lambda frame: frame["type"] == "workspace")
        await listing.hear()
        await in_thread(take_out)(cast.bob)
        assert await communicator.closed_with() == 4404
        assert (await listing.hear())["workspaces"] == []
        await in_thread(happen)(workspace)
        await in_thread(send_access_changed)(cast.bob.user)
        assert (await listing.hear())["type"] == "snapshot"  # and nothing about the change


def take_out(actor: Actor) -> None:
    actor.user.memberships.all().delete()
    send_access_changed(actor.user)


async def test_who_is_deactivated_is_put_out_at_once(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace), cast.bob) as communicator, socket(HOME, cast.bob) as listing:
        await communicator.hear_until(lambda frame: frame["type"] == "workspace")
        await listing.hear()
        await in_thread(deactivate)(cast.bob)
        assert await communicator.closed_with() == 4401
        assert await listing.closed_with() == 4401


def deactivate(actor: Actor) -> None:
    actor.user.is_active = False
    actor.user.save()
    send_access_changed(actor.user)


async def test_who_signs_out_while_a_socket_joins_is_put_out_though_it_heard_nothing(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sockets.who

    def signs_out_at_once(scope: dict[str, Any]) -> Actor:
        actor = known(scope)
        sessions.end_all(actor.user)
        return actor

    monkeypatch.setattr(sockets, "who", signs_out_at_once)
    async with socket(HOME, cast.bob) as communicator:
        assert await communicator.closed_with() == 4401


async def with_token(actor: Actor, address: str) -> tuple[APIToken, str]:
    token, _secret = await in_thread(tokens.issue)(actor.user, "script", [Scope.READ])
    ticket, _expires = await in_thread(tickets.issue)(Actor(actor.user, token))
    return token, f"{address}?token={ticket}"


async def test_a_revoked_token_ends_what_it_opened_and_nothing_else(cast: Cast) -> None:
    token, address = await with_token(cast.bob, HOME)
    async with socket(address) as by_token, socket(HOME, cast.bob) as by_session:
        await by_token.hear()
        await by_session.hear()
        await in_thread(tokens.revoke)(cast.bob, token.pk)
        assert await by_token.closed_with() == 4401
        assert (await by_session.hear())["type"] == "snapshot"


async def test_what_a_token_opened_ends_when_it_expires(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    token, address = await with_token(cast.bob, HOME)
    expired = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await (expired.wait() if seconds > 3600 else asyncio.sleep(seconds))

    clock = SimpleNamespace(now=lambda: token.expires_at if expired.is_set() else timezone.now())
    monkeypatch.setattr(sockets, "timezone", clock)
    monkeypatch.setattr(sockets, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
    async with socket(address) as communicator:
        await communicator.hear()
        await in_thread(APIToken.objects.filter(pk=token.pk).update)(expires_at=timezone.now())
        expired.set()
        assert await communicator.closed_with() == 4401


async def test_a_clock_that_is_set_back_lets_nothing_outlast_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expires_at, slept = timezone.now(), list[float]()
    clock = iter(expires_at - timedelta(seconds=left) for left in (60, 30, 30, 0))

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(sockets, "timezone", SimpleNamespace(now=lambda: next(clock)))
    monkeypatch.setattr(sockets, "asyncio", SimpleNamespace(sleep=sleep))
    live = sockets.Live()
    live._wake = asyncio.Event()
    await live._recheck_at(expires_at)
    assert (slept, live._recheck) == ([60, 30], True)


# --- Logs


def log_of(workspace: Workspace) -> LogStream:
    return make_stream(workspace.tenant, workspace.pk, "workspace")


async def test_log_lines_come_as_they_are_stored(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    stream = await in_thread(log_of)(workspace)
    await in_thread(write)(stream, ["before"])
    async with socket(one(workspace, "logs/"), cast.bob) as communicator:
        assert await communicator.hear() == {"type": "start"}
        assert (await communicator.hear())["line"] == "before"
        for number, line in enumerate(("one", "two"), 1):
            await in_thread(write)(stream, [line], at_ns=NOON_NS + number * SECOND)
            heard = await communicator.hear()
            assert (heard["type"], heard["line"], heard["number"]) == ("line", line, number + 1)


async def test_a_log_goes_on_after_a_place(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    stream = await in_thread(log_of)(workspace)
    await in_thread(write)(stream, [str(number) for number in range(1200)])
    async with socket(one(workspace, "logs/"), cast.bob) as communicator:
        heard = (await communicator.hear_until(lambda frame: frame.get("line") == "1199"))[1:]
        assert [frame["line"] for frame in heard] == [str(number) for number in range(700, 1200)]
    async with socket(one(workspace, f"logs/?after={heard[0]['after']}"), cast.bob) as communicator:
        again = (await communicator.hear_until(lambda frame: frame.get("line") == "1199"))[1:]
        assert again == heard[1:]
        await in_thread(write)(stream, ["new"], at_ns=NOON_NS + 5000 * SECOND)
        assert (await communicator.hear())["line"] == "new"


async def test_lines_of_other_runs_stay_out_of_the_log_of_one(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    old, new = [await in_thread(log_of)(workspace) for _ in range(2)]
    async with socket(one(workspace, f"logs/?run={old.run}"), cast.bob) as communicator:
        assert await communicator.hear() == {"type": "start"}
        await in_thread(write)(new, ["of another"])
        await in_thread(write)(old, ["of it"], at_ns=NOON_NS + SECOND)
        heard = await communicator.hear()
        assert (heard["line"], heard["run"]) == ("of it", str(old.run))


async def test_a_run_that_is_none_is_not_asked_for(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    await in_thread(write)(await in_thread(log_of)(workspace), ["line"])
    async with socket(one(workspace, "logs/?run=7&index=x"), cast.bob) as communicator:
        assert await communicator.hear() == {"type": "start"}
        assert (await communicator.hear())["line"] == "line"


async def test_a_slow_reader_of_a_log_misses_nothing(cast: Cast) -> None:
    """Lines wait in rows while it takes nothing; no queue grows."""
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    stream = await in_thread(log_of)(workspace)
    async with socket(one(workspace, "logs/"), cast.bob) as communicator:
        assert await communicator.hear() == {"type": "start"}
        for number in range(20):
            await in_thread(write)(
                stream, [f"{number}/{n}" for n in range(50)], at_ns=NOON_NS + number * 50 * SECOND
            )
        heard = await communicator.hear_until(lambda frame: frame.get("line") == "19/49")
        expected = [f"{number}/{n}" for number in range(20) for n in range(50)]
        assert [frame["line"] for frame in heard if frame["type"] == "line"] == expected


async def test_a_log_ends_when_access_does(cast: Cast) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace, "logs/"), cast.bob) as communicator:
        await communicator.hear()
        await in_thread(take_out)(cast.bob)
        assert await communicator.closed_with() == 4404


@pytest.mark.parametrize("frame", [{"text": "no JSON"}, {"bytes": b"\xff"}])
async def test_whatever_a_client_says_it_leaves_nothing_running(cast: Cast, frame: dict[str, Any]) -> None:
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket(one(workspace, "logs/"), cast.bob) as communicator:
        assert [(await communicator.hear())["type"] for _ in range(2)] == ["start", "note"]
        await communicator.wire.send_input({"type": "websocket.receive", **frame})
        await in_thread(write)(await in_thread(log_of)(workspace), ["still there"])
        assert (await communicator.hear())["line"] == "still there"
