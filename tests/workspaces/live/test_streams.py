"""Streams of events: whatever happens to sockets, processes and connections, pages get all events in order.

Several web processes; pages that leave without notice, come back, read slowly or not at all; the live connection to
the database cut; several writers at once. In the end, a page shows what the rows say.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.notices import inbox
from portal import channel_layer
from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.streams import ListReader, NoticeReader, Reader, StoryReader, web_processes
from workloads.live import following, reads
from workspaces.models import Workspace
from workspaces.state.live import announce, changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db(transaction=True)

WEB_PROCESSES = 3
READERS = 7
TOLD_BEFORE = 10  # events of a new workspace
WHICH = st.integers(0, READERS - 1)
TIMES = st.integers(1, 8)

Step = tuple[Any, ...]
WRITE = st.tuples(st.just("write"), TIMES)
STEPS = st.one_of(
    *[WRITE] * 4,
    st.tuples(st.just("fail"), TIMES),
    st.tuples(st.just("read_notices")),
    st.tuples(st.just("make_another")),
    st.tuples(st.just("delete_another")),
    *[st.tuples(st.just("come_back"), WHICH)] * 2,
    st.tuples(st.just("read_no_more"), WHICH),
    st.tuples(st.just("read_on"), WHICH),
    st.tuples(st.just("cut"), st.integers(0, WEB_PROCESSES - 1)),
    st.tuples(st.just("cut_all")),
    st.tuples(st.just("resync"), st.integers(0, WEB_PROCESSES - 1)),
    st.tuples(st.just("pause")),
)


class World:
    """A workspace whose events are read by many, and others that come and go beside it."""

    def __init__(self, cast: Cast, layers: list[Any], afters: tuple[int, int, int]) -> None:
        self.cast, self.layers = cast, layers
        self.workspace = make_workspace(cast, cast.bob, name=f"exp-{Workspace.objects.count()}")
        one, two, three = layers
        self.readers: list[Reader] = [
            *(
                StoryReader(cast.bob, layer, self.workspace, after)
                for layer, after in zip(layers, afters, strict=True)
            ),
            ListReader(cast.bob, one),
            ListReader(cast.admin, two),
            NoticeReader(cast.bob, two),
            NoticeReader(cast.bob, three),
        ]
        self.writing: list[asyncio.Task[None]] = []

    def begin(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run the work on its own connection, as another process, while the rest goes on."""

        def in_a_process() -> None:
            try:
                work(*arguments)
            finally:
                connection.close()

        self.writing.append(asyncio.create_task(asyncio.to_thread(in_a_process)))

    async def play(self, name: str, *arguments: Any) -> None:
        done = getattr(self, name)(*arguments)
        if done is not None:
            await done

    # --- actions

    def write(self, times: int) -> None:
        self.begin(happen, self.workspace, "stopping", times)

    def fail(self, times: int) -> None:
        self.begin(happen, self.workspace, "given_up", times)

    def read_notices(self) -> None:
        self.begin(inbox.read_all, self.cast.bob.user)

    def make_another(self) -> None:
        self.begin(make_one, self.cast, f"other-{uuid4()}")

    def delete_another(self) -> None:
        self.begin(delete_one, self.workspace)

    async def come_back(self, which: int) -> None:
        await self.readers[which].comes_back()

    def read_no_more(self, which: int) -> None:
        self.readers[which].reads.clear()

    def read_on(self, which: int) -> None:
        self.readers[which].reads.set()

    async def cut(self, which: int) -> None:
        await in_thread(end_listening)(which)

    async def cut_all(self) -> None:
        await in_thread(end_listening)(None)

    async def resync(self, which: int) -> None:
        for group in (
            f"workspace.{self.workspace.pk}",
            f"workspaces.{self.workspace.tenant_id}",
            "workspaces.staff",
        ):
            await self.layers[which].group_send(group, {"type": "resync"})

    async def pause(self) -> None:
        await asyncio.sleep(0.02)

    # --- the end

    async def becomes_quiet(self) -> None:
        for written in self.writing:
            await written
        for reader in self.readers:
            reader.reads.set()
        self.write(1)  # late and repeated frames come before this event
        await self.writing[-1]
        for reader in self.readers:
            await reader.until_as_it_is()


def happen(workspace: Workspace, code: str, times: int) -> None:
    for _ in range(times):
        with changing(workspace.pk) as row:
            row.priority -= 1
            add_event(row, code)


def make_one(cast: Cast, name: str) -> None:
    with transaction.atomic():
        announce(make_workspace(cast, cast.bob, name=name))


def delete_one(staying: Workspace) -> None:
    others = Workspace.objects.filter(deleted_at=None).exclude(pk=staying.pk)
    if (other := others.first()) is not None:
        with changing(other.pk) as row:
            row.deleted_at = timezone.now()
            add_event(row, "deleted")


def end_listening(which: int | None) -> None:
    """Cut the live connection of a web process (None: of all), as a restart of the database or a firewall does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN berth_live%' ORDER BY pid"
        )
        pids = [pid for (pid,) in cursor.fetchall()]
        for pid in pids if which is None else pids[which : which + 1]:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])  # and waits until it is gone


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


async def every_page_ends_alike(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, examples: int, steps: int
) -> Counter[str]:
    ran: Counter[str] = Counter()
    layers = web_processes(WEB_PROCESSES, monkeypatch)
    for module in (following, reads):
        monkeypatch.setattr(module, "EVENTS_AT_ONCE", 7)
    loop = asyncio.get_running_loop()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        afters=st.tuples(*[st.integers(0, TOLD_BEFORE)] * 3),
        plan=st.lists(STEPS, min_size=steps // 2, max_size=steps),
    )
    def play(afters: tuple[int, int, int], plan: list[Step]) -> None:
        asyncio.run_coroutine_threadsafe(play_one(afters, plan), loop).result()

    async def play_one(afters: tuple[int, int, int], plan: list[Step]) -> None:
        world = await in_thread(World)(cast, layers, afters)
        for reader in world.readers:
            await reader.opens()
        try:
            for name, *arguments in plan:
                await world.play(name, *arguments)
            await world.becomes_quiet()
        finally:
            for reader in world.readers:
                await reader.leaves()
        ran["examples"] += 1
        ran["steps"] += len(plan)
        ran["events"] += await in_thread(lambda: Workspace.objects.get(pk=world.workspace.pk).last_event)()

    await asyncio.to_thread(play)
    return ran


async def test_a_page_hears_what_happened_while_its_live_connection_was_away(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "SHORTEST_DELAY_SECONDS", 0.3)
    (layer,) = web_processes(1, monkeypatch)
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    pages = [StoryReader(cast.bob, layer, workspace, TOLD_BEFORE), ListReader(cast.bob, layer)]
    for page in pages:
        await page.opens()
        await page.until_as_it_is()

    def happen_meanwhile() -> None:
        end_listening(None)
        happen(workspace, "stopping", 3)

    await in_thread(happen_meanwhile)()
    for page in pages:
        await page.until_as_it_is()
        await page.leaves()


@pytest.mark.slow
async def test_every_page_ends_with_the_same_story(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    await every_page_ends_alike(cast, monkeypatch, examples=2, steps=12)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_every_page_ends_with_the_same_story_for_long(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, found: Callable[[str, str], None]
) -> None:
    ran = await every_page_ends_alike(cast, monkeypatch, examples=40, steps=40)
    found(
        "streams: pages leave, come back, read slowly; live connections cut",
        f"{ran['examples']} examples, {ran['steps']} steps, {ran['events']} events: 7 pages ended alike each time",
    )
