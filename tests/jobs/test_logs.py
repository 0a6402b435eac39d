"""Logs of jobs: the collector against a real HTTP Kubernetes API, with Berth's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml
from django.db import connections

from jobs.models import Attempt
from tests.cast import Cast
from tests.shared.driving_jobs import drive, in_phase, submitted
from tests.shared.log_rows import stored
from tests.shared.sockets import in_thread
from workloads.logs import collector
from workloads.logs.collector import Collector, Database
from workloads.logs.models import LogStream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
SECONDS = 60


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


async def collect_until(done: Callable[[], bool]) -> None:
    database = Database()
    working = Collector(database)
    try:
        async with asyncio.timeout(SECONDS):
            while not await in_thread(done)():
                await working.step()
                await asyncio.sleep(0.02)
    finally:
        await working.stop()
        await database.call(connections.close_all)


def all_whole(count: int) -> bool:
    return LogStream.objects.filter(ended_at__isnull=False).count() == count


@pytest.mark.slow
async def test_the_output_of_each_attempt_is_kept(house: Cast) -> None:
    job = await in_thread(submitted)(house, completions=2, parallelism=2)
    await in_thread(drive)(job, in_phase("succeeded"))
    await collect_until(lambda: all_whole(2))
    streams = [stream async for stream in LogStream.objects.order_by("index")]
    attempts = {attempt.run: attempt async for attempt in Attempt.objects.select_related("part")}
    for index, stream in enumerate(streams):
        assert (stream.holder_kind, stream.holder_id, stream.tenant_id) == ("job", job.pk, house.demo.pk)
        assert (stream.index, stream.attempt) == (index, 1)
        assert attempts[stream.run].part.index == index
        assert "Test PASSED" in await in_thread(stored)(stream)
    await collect_until(lambda: True)  # another leader finds nothing more
    assert await LogStream.objects.acount() == 2


async def test_logs_are_read_with_the_token_of_now(
    house: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubeconfig is rewritten when its token is, and the next request takes the new one."""
    monkeypatch.setattr(collector, "CLUSTERS_SECONDS", 0.1)
    job = await in_thread(submitted)(house)
    await in_thread(drive)(job, in_phase("succeeded"))
    kubeconfig, right = tmp_path / "kubeconfig", Path(house.cluster.kubeconfig_path).read_text()
    config = yaml.safe_load(right)
    config["users"][0]["user"] = {"token": "of yesterday"}
    contents = [yaml.safe_dump(config), right]
    house.cluster.kubeconfig_path = str(kubeconfig)
    await house.cluster.asave()

    def is_whole() -> bool:
        if contents:
            kubeconfig.write_text(contents.pop(0))
        return all_whole(1)

    await collect_until(is_whole)
