"""Websockets of jobs: who gets in, a snapshot with what changes, and events without a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from django.db import connection, connections

from jobs.changing import add_event, changing
from jobs.models import Job
from jobs.runs import lifecycle
from tests.cast import Cast
from tests.shared.job_rows import make_job
from tests.shared.sockets import in_thread, socket
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = "/ws/jobs/00000000-0000-4000-8000-000000000000/"


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


def happen(job: Job, count: int = 1) -> None:
    for _ in range(count):
        with changing(job.pk) as row:
            add_event(row, "spared", index=0)


@pytest.mark.parametrize("path", ["/ws/jobs/", NOBODY])
async def test_who_is_not_signed_in_is_closed_with_4401(cast: Cast, path: str) -> None:
    async with socket(path) as communicator:
        assert await communicator.closed_with() == 4401


async def test_a_stranger_is_closed_with_4404_as_for_what_does_not_exist(cast: Cast) -> None:
    job = await in_thread(make_job)(cast, cast.bob)
    for path in (f"/ws/jobs/{job.pk}/", NOBODY):
        async with socket(path, cast.carol) as communicator:
            assert await communicator.closed_with() == 4404


async def test_the_list_tells_a_snapshot_then_each_change_of_ones_tenants(cast: Cast) -> None:
    job = await in_thread(make_job)(cast, cast.bob)
    foreign = await in_thread(make_job)(cast, cast.carol)
    async with socket("/ws/jobs/", cast.bob) as communicator:
        first = await communicator.hear()
        assert (first["type"], first["truncated"]) == ("snapshot", False)
        assert [row["id"] for row in first["jobs"]] == [str(job.pk)]
        assert first["jobs"][0]["env"] == {"GREETING": "hello"}
        await in_thread(happen)(foreign)
        await in_thread(happen)(job)
        changed = await communicator.hear()
        assert (changed["type"], changed["job"]["id"]) == ("job", str(job.pk))


async def test_others_hear_of_it_without_its_private_settings(cast: Cast) -> None:
    job = await in_thread(make_job)(cast, cast.bob)
    async with socket(f"/ws/jobs/{job.pk}/?after={job.last_event}", cast.victor) as communicator:
        heard = await communicator.hear()
    assert (heard["job"]["env"], heard["job"]["command"]) == (None, None)


async def test_events_come_after_a_number_without_a_gap_and_then_the_job(cast: Cast) -> None:
    job = await in_thread(make_job)(cast, cast.bob)
    await in_thread(happen)(job, 4)
    async with socket(f"/ws/jobs/{job.pk}/?after=2", cast.bob) as communicator:
        heard = await communicator.hear_until(lambda frame: frame["type"] == "job")
        assert [frame["event"]["id"] for frame in heard[:-1]] == [3, 4, 5]

        def cancel() -> None:
            lifecycle.cancel(cast.bob, job)
            connection.close()

        await asyncio.to_thread(cancel)
        heard = await communicator.hear_until(lambda frame: frame.get("job", {}).get("phase") == "cancelled")
    assert [frame["event"]["code"] for frame in heard[:-1]] == ["cancel_requested", "cancelled"]


async def test_sockets_of_workspaces_hear_nothing_of_jobs(cast: Cast) -> None:
    job = await in_thread(make_job)(cast, cast.bob)
    workspace = await in_thread(make_workspace)(cast, cast.bob)
    async with socket("/ws/workspaces/", cast.bob) as communicator:
        assert (await communicator.hear())["type"] == "snapshot"
        await in_thread(happen)(job)
        await in_thread(touch)(workspace.pk)
        assert (await communicator.hear())["workspace"]["id"] == str(workspace.pk)


def touch(workspace_id: object) -> None:
    from workspaces.state import live
    from workspaces.state.story import add_event as add

    with live.changing(workspace_id) as row:  # type: ignore[arg-type]
        add(row, "stopping")
