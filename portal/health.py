"""Is this process alive, can it serve, and is all of Berth at work: for load balancers, probes, alerts and `make up`.

`/readyz/web` tells of this process alone. A worker that is dead must not take the pages away from people who could
still read them; that it is dead, `/readyz` says.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

import psycopg
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import Error as DatabaseError
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse

from portal.channel_layer import connection_parameters
from vitals.pulse import SILENT_AFTER_SECONDS

TIMEOUT_SECONDS = 3
Checks = dict[str, str | None]
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

_under_way: dict[tuple[str, ...], asyncio.Task[Checks]] = {}


async def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers; nothing else is looked at, or an outage elsewhere would restart it."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """All parts that matter: 200, or 503 with what is missing. It says no more than that: anybody may ask."""
    return _answer(await _shared(parts_that_matter()))


async def readyz_web(request: HttpRequest) -> JsonResponse:
    """What this process needs to serve."""
    return _answer(await _shared(()))


def parts_that_matter() -> tuple[str, ...]:
    """Beside the web process that answers. `queue` hands tasks to the workers."""
    always = ("worker", "queue", "watcher")
    return (*always, "ssh-jump") if settings.SSH_JUMP_HOST else always


def part_problem(silent_seconds: float | None) -> str | None:
    if silent_seconds is None:
        return "Not heard yet."
    if silent_seconds > SILENT_AFTER_SECONDS:
        return f"Not heard for {silent_seconds:.0f} seconds."
    return None


def _answer(checks: Checks) -> JsonResponse:
    ready = not any(checks.values())
    told = {name: problem or "ok" for name, problem in checks.items()}
    return JsonResponse(
        {"status": "ok" if ready else "not ready", "checks": told}, status=200 if ready else 503
    )


async def _shared(parts: tuple[str, ...]) -> Checks:
    """Who asks while the same is being looked at gets that answer: anybody may ask, and a thousand at once must not
    take the database's connections from everybody else."""
    task = _under_way.get(parts)
    if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
        task = _under_way[parts] = asyncio.create_task(_checks(parts))
    return await asyncio.shield(task)


async def _checks(parts: tuple[str, ...]) -> Checks:
    """What is wrong with each, or None. By a connection of its own: fast to fail, not behind who waits for the pool."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            parameters = connection_parameters() | {"connect_timeout": TIMEOUT_SECONDS}
            async with await psycopg.AsyncConnection.connect(**parameters) as connection:
                missing = _wanted_migrations() - await _applied_migrations(connection)
                if missing:
                    text = f"{len(missing)} database migrations are missing: run manage.py migrate."
                    return {"database": text}
                silent = await _silent_seconds(connection) if parts else {}
    except psycopg.errors.UndefinedTable:
        return {"database": "The database is empty: run manage.py migrate."}
    except (psycopg.Error, OSError, TimeoutError):
        return {"database": "The database does not answer."}
    told = {part: part_problem(silent.get(part)) for part in parts}
    return {"database": None, "live events": await _channel_problem(), **told}


async def _applied_migrations(connection: Connection) -> set[tuple[str, str]]:
    cursor = await connection.execute("SELECT app, name FROM django_migrations")
    return {(app, name) for app, name in await cursor.fetchall()}


async def _silent_seconds(connection: Connection) -> dict[str, float]:
    """Since any process of each part was heard. One that seems to come was heard before the clock was set back."""
    cursor = await connection.execute(
        "SELECT part, min(abs(extract(epoch FROM now() - seen_at)))::float8 FROM vitals_process GROUP BY part"
    )
    return dict(await cursor.fetchall())


@lru_cache(maxsize=1)
def _wanted_migrations() -> frozenset[tuple[str, str]]:
    """What this version of the code needs; read from disk once."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


async def _channel_problem() -> str | None:
    """One message to ourselves through the channel layer and back."""
    layer = get_channel_layer()
    if layer is None:
        return "No channel layer is set."
    channel = await layer.new_channel("readyz")
    group = channel.replace("!", ".")
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await layer.group_add(group, channel)
            await layer.group_send(group, {"type": "readyz"})
            await layer.receive(channel)
    except (psycopg.Error, DatabaseError, OSError, TimeoutError):
        return "Live events do not come through."
    finally:
        layer.leave(channel)
    return None
