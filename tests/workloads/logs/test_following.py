"""Following of a log over cuts, restarts, errors and a store that is away: stored = written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections

from clusters.errors import ClusterUnavailable
from tests.cast import Cast
from tests.shared.log_rows import NOON_NS, make_stream, stored
from tests.shared.sockets import in_thread
from tests.workloads.logs.log_server import LogServer, serving
from workloads.logs import collector, following, store
from workloads.logs.chunks import Entry
from workloads.logs.following import Following, Known
from workloads.logs.intake import SECOND
from workloads.logs.models import LogStream
from workloads.logs.sources import Pod

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 60


@pytest.fixture(autouse=True)
async def _no_connection_stays_open(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(following, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(following, "LONGEST_PAUSE_SECONDS", 0.2)
    yield
    await in_thread(connections.close_all)()


def pod_of(stream: LogStream, **state: Any) -> Pod:
    return Pod(
        namespace=stream.namespace,
        name=stream.pod,
        uid=stream.pod_uid,
        holder_kind=stream.holder_kind,
        holder_id=stream.holder_id,
        run=stream.run,
        container=stream.container,
        **({"is_placed": True, "has_started": True} | state),
    )


async def recall(pod: Pod) -> Known | None:
    known: Known | None = await in_thread(collector.recall)(pod)
    return known


async def keep(logs: Following) -> None:
    """Store what waits, as the collector does."""
    batch = logs.batch()
    if batch is None:
        return
    if await in_thread(store.append)([batch]):
        logs.forget()
    else:
        logs.kept(batch)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not done():
            await asyncio.sleep(0.01)


async def keep_until(logs: Following, done: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not done():
            await keep(logs)
            await asyncio.sleep(0.01)


def lines(first: int, count: int) -> list[Entry]:
    return [
        Entry(NOON_NS + n * SECOND // 7, f"line {n} {'x' * (n % 50)}") for n in range(first, first + count)
    ]


async def whole(server: LogServer, stream: LogStream, logs: Following) -> list[str]:
    """End the pod, wait until its log is whole, and return it."""
    server.is_over = True
    logs.hear(replace(logs.pod, has_ended=True))
    await keep_until(logs, lambda: logs.is_done)
    found: list[str] = await in_thread(stored)(stream)
    return found


async def test_a_log_is_stored_as_it_grows_and_ends_with_its_pod(cast: Cast) -> None:
    stream = await in_thread(make_stream)(cast.demo)
    server = LogServer(lines(0, 10))
    async with serving(server) as streams:
        logs = Following(pod_of(stream), streams, recall, lambda: None)
        logs.start()
        await keep_until(logs, lambda: bool(server.asked))
        server.log += lines(10, 5)
        texts = await whole(server, stream, logs)
    assert texts == [entry.text for entry in lines(0, 15)]
    await in_thread(stream.refresh_from_db)()
    assert stream.ended_at is not None


@pytest.mark.slow
async def test_streams_that_are_cut_leave_no_gap_and_no_double(cast: Cast) -> None:
    stream = await in_thread(make_stream)(cast.demo)
    server = LogServer(lines(0, 400), cuts=[1, 3000, 0, 4001, 17, 9999, 35, 8000])
    server.statuses = [200, 200, 500, 200, 429, 200]
    async with serving(server) as streams:
        logs = Following(pod_of(stream), streams, recall, lambda: None)
        logs.start()
        await keep_until(logs, lambda: not server.cuts)
        assert await whole(server, stream, logs) == [entry.text for entry in lines(0, 400)]
    assert sum("sinceTime" in query for query in server.asked) >= 3


async def test_a_server_says_when_to_come_back() -> None:
    async with serving(LogServer(statuses=[429])) as streams:
        with pytest.raises(ClusterUnavailable) as refusal:
            await anext(streams.lines("n", "p", "job", longest_line_bytes=80))
    assert refusal.value.retry_after_seconds == 7


async def test_a_collector_that_dies_is_followed_by_one_that_goes_on(cast: Cast) -> None:
    """Lines that were read and not stored are read again; lines that were stored are not."""
    stream = await in_thread(make_stream)(cast.demo)
    server = LogServer(lines(0, 50))
    async with serving(server) as streams:
        for round_ in range(1, 5):
            logs = Following(pod_of(stream), streams, recall, lambda: None)
            logs.start()
            if round_ % 2:
                while (batch := logs.batch()) is None:
                    await asyncio.sleep(0.01)
                await in_thread(store.append)([batch])  # and dies before it hears of that
            server.log += lines(len(server.log), 20)
            logs.stop()
        logs = Following(pod_of(stream), streams, recall, lambda: None)
        logs.start()
        assert await whole(server, stream, logs) == [entry.text for entry in server.log]


async def test_who_lost_the_lead_begins_anew_from_the_rows(cast: Cast) -> None:
    stream = await in_thread(make_stream)(cast.demo)
    server = LogServer(lines(0, 20))
    async with serving(server) as streams:
        pair = [Following(pod_of(stream), streams, recall, lambda: None) for _ in range(2)]
        for logs in pair:
            logs.start()
        await until(lambda: all(logs.batch() is not None for logs in pair))
        await keep(pair[1])
        await keep(pair[0])
        server.log += lines(20, 5)
        assert await whole(server, stream, pair[0]) == [entry.text for entry in server.log]
        pair[1].stop()


async def test_the_last_lines_of_a_container_that_restarted_are_read(cast: Cast) -> None:
    stream = await in_thread(make_stream)(cast.demo, kind="workspace")
    server = LogServer(lines(10, 3), before=lines(0, 10))
    async with serving(server) as streams:
        logs = Following(pod_of(stream, restarts=1), streams, recall, lambda: None)
        logs.start()
        assert await whole(server, stream, logs) == [entry.text for entry in lines(0, 13)]


@pytest.mark.slow
async def test_a_log_that_waits_to_be_stored_is_not_read_on(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory has a bound: while the database is away, lines wait in the cluster."""
    monkeypatch.setattr(following, "MOST_WAITING_BYTES", 4096)
    stream = await in_thread(make_stream)(cast.demo)
    big = [Entry(NOON_NS + n * SECOND // 100, "x" * 1000) for n in range(400)]
    server = LogServer(big)
    hurried = asyncio.Event()
    async with serving(server) as streams:
        logs = Following(pod_of(stream), streams, recall, hurried.set)
        logs.start()
        await asyncio.wait_for(hurried.wait(), SECONDS)
        await asyncio.sleep(0.2)
        batch = logs.batch()
        assert batch is not None
        assert len(batch.entries) <= 6
        assert await whole(server, stream, logs) == [entry.text for entry in big]


async def test_a_pod_that_is_gone_ends_its_log(cast: Cast) -> None:
    stream = await in_thread(make_stream)(cast.demo)
    server = LogServer(statuses=[404])
    async with serving(server) as streams:
        logs = Following(pod_of(stream), streams, recall, lambda: None)
        logs.start()
        await keep_until(logs, lambda: logs.is_done)
    await in_thread(stream.refresh_from_db)()
    assert stream.ended_at is not None


async def test_a_pod_that_nobody_knows_is_left_alone(cast: Cast) -> None:
    stream = LogStream(pod_uid=str(uuid4()), container="job", namespace="n", pod="p", holder_kind="job")
    stream.holder_id, stream.run = uuid4(), uuid4()
    server = LogServer(lines(0, 1))
    async with serving(server) as streams:
        logs = Following(pod_of(stream), streams, recall, lambda: None)
        logs.start()
        await asyncio.sleep(0.2)
        assert (logs.batch(), server.asked) == (None, [])
        logs.stop()
