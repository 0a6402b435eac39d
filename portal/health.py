"""Is this process alive, and can it serve: for load balancers, Kubernetes probes and `make up`."""

from __future__ import annotations

import asyncio
from functools import lru_cache

import psycopg
from channels.layers import get_channel_layer
from django.db import Error as DatabaseError
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse

from portal.channel_layer import connection_parameters

TIMEOUT_SECONDS = 3


async def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers; nothing else is looked at, or an outage elsewhere would restart it."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """200, or 503 with what is missing. It says no more than that: anybody may ask."""
    problem = await _database_problem()
    checks = {"database": problem or "ok"}
    if problem is None:
        checks["live events"] = await _channel_problem() or "ok"
    ready = all(result == "ok" for result in checks.values())
    status = {"status": "ok" if ready else "not ready", "checks": checks}
    return JsonResponse(status, status=200 if ready else 503)


async def _database_problem() -> str | None:
    """By a connection of its own: fast to fail, and not behind the requests that wait for the pool."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            applied = await _applied_migrations()
    except psycopg.errors.UndefinedTable:
        return "The database is empty: run manage.py migrate."
    except (psycopg.Error, OSError, TimeoutError):
        return "The database does not answer."
    missing = _wanted_migrations() - applied
    if missing:
        return f"{len(missing)} database migrations are missing: run manage.py migrate."
    return None


async def _applied_migrations() -> set[tuple[str, str]]:
    parameters = connection_parameters() | {"connect_timeout": TIMEOUT_SECONDS}
    async with await psycopg.AsyncConnection.connect(**parameters) as connection:
        cursor = await connection.execute("SELECT app, name FROM django_migrations")
        return {(app, name) for app, name in await cursor.fetchall()}


@lru_cache(maxsize=1)
def _wanted_migrations() -> frozenset[tuple[str, str]]:
    """What this version of the code needs; read from disk once."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


async def _channel_problem() -> str | None:
    """One message to ourselves through the channel layer and back."""
    layer = get_channel_layer()
    if layer is None:
        return "No channel layer is set."
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            channel = await layer.new_channel("readyz")
            await layer.group_add(channel.replace("!", "."), channel)
            await layer.group_send(channel.replace("!", "."), {"type": "readyz"})
            await layer.receive(channel)
            await layer.group_discard(channel.replace("!", "."), channel)
    except (psycopg.Error, DatabaseError, OSError, TimeoutError):
        return "Live events do not come through."
    return None
