"""The collector: one process leads, and another takes over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from django.db import connections

from tests.cast import Cast
from tests.shared.sockets import in_thread
from workloads.logs import collector
from workloads.logs.collector import Collector

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
SECONDS = 60


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


async def test_one_process_leads_and_another_takes_over(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "STANDBY_SECONDS", 0.05)
    led: list[str] = []
    stops = {name: asyncio.Event() for name in "ab"}

    async def step(self: Collector) -> None:
        led.append(next(name for name, task in tasks.items() if task is asyncio.current_task()))
        await asyncio.sleep(0)

    monkeypatch.setattr(Collector, "step", step)
    tasks = {name: asyncio.create_task(collector.collect(stopped)) for name, stopped in stops.items()}
    async with asyncio.timeout(SECONDS):
        while not led:
            await asyncio.sleep(0.01)
        first = led[0]
        await asyncio.sleep(0.5)
        assert set(led) == {first}
        stops[first].set()
        await tasks[first]
        while set(led) == {first}:
            await asyncio.sleep(0.01)
        for name, stopped in stops.items():
            stopped.set()
            await tasks[name]
    assert set(led) == {"a", "b"}
