"""Health checks for load balancers, probes, alerts and `make up`: is this process alive, can it serve, does all run?

`/readyz/web` reports on this process alone: a dead worker must not take away the pages that people could still read.
`/readyz` reports the dead worker.
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
from vitals.release import too_old

TIMEOUT_SECONDS = 3
# Of several servers, one that lost its power does not refuse: libpq waits two seconds at least.
SKIP_SECONDS = 2
Checks = dict[str, str | None]
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

_under_way: dict[tuple[str, ...], asyncio.Task[Checks]] = {}


async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 and check nothing else: an outage elsewhere must not restart this process."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if all parts work, or 503 with what is missing. No more detail: anybody may ask."""
    return _answer(await _shared(parts_that_matter()))


async def readyz_web(request: HttpRequest) -> JsonResponse:
    """Answer 200 if this process has all it needs to serve, else 503."""
    return _answer(await _shared(()))


def parts_that_matter() -> tuple[str, ...]:
    """Parts besides the web process that answers. `queue` hands tasks to the workers."""
    always = ("worker", "queue", "watcher", "collector")
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
    """Return the answer of a check that is under way, or start one: anybody may ask, and a thousand at once must not
    use up the database's connections."""
    task = _under_way.get(parts)
    if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
        task = _under_way[parts] = asyncio.create_task(_checks(parts))
    return await asyncio.shield(task)


async def _checks(parts: tuple[str, ...]) -> Checks:
    """Return each part's problem or None. A separate connection fails fast and does not wait for the pool."""
    parameters = connection_parameters()
    others = str(parameters.get("host", "")).count(",")
    parameters["connect_timeout"] = SKIP_SECONDS if others else TIMEOUT_SECONDS
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS + SKIP_SECONDS * others):
            async with await psycopg.AsyncConnection.connect(**parameters) as connection:
                missing = _wanted_migrations() - await _applied_migrations(connection)
                if missing:
                    text = f"{len(missing)} database migrations are missing: run manage.py migrate."
                    return {"database": text}
                if await _takes_newer_ones_alone(connection):
                    return {"database": "The database is of a newer release: install that."}
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


async def _takes_newer_ones_alone(connection: Connection) -> bool:
    cursor = await connection.execute("SELECT oldest FROM vitals_release")
    return any(too_old(oldest) for (oldest,) in await cursor.fetchall())


async def _silent_seconds(connection: Connection) -> dict[str, float]:
    """Seconds since each part was heard. A time in the future was written before the clock was set back."""
    cursor = await connection.execute(
        "SELECT part, min(abs(extract(epoch FROM now() - seen_at)))::float8 FROM vitals_process GROUP BY part"
    )
    return dict(await cursor.fetchall())


@lru_cache(maxsize=1)
def _wanted_migrations() -> frozenset[tuple[str, str]]:
    """Migrations that this version of the code needs; read from disk once."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


async def _channel_problem() -> str | None:
    """Send a message to ourselves through the channel layer. Return what is wrong, or None."""
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
