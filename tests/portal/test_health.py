import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import AsyncClient

from portal import health


async def ask(path: str) -> tuple[int, dict[str, Any]]:
    answer = await AsyncClient().get(path)
    await sync_to_async(connections.close_all)()  # else the test database could not be dropped
    return answer.status_code, json.loads(answer.content)


async def test_the_process_is_healthy_whatever_else_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "connection_parameters", lambda: {"host": "/nowhere"})
    assert await ask("/healthz") == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
async def test_ready_with_database_migrations_and_live_events() -> None:
    expected = {"status": "ok", "checks": {"database": "ok", "live events": "ok"}}
    assert await ask("/readyz") == (200, expected)


async def test_not_ready_without_the_database_and_silent_about_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = {"host": "/nowhere", "user": "berth", "password": "hunter2", "dbname": "secret-name"}
    monkeypatch.setattr(health, "connection_parameters", lambda: parameters)
    status, body = await ask("/readyz")
    assert (status, body["checks"]) == (503, {"database": "The database does not answer."})
    assert "hunter2" not in str(body)


@pytest.mark.django_db(transaction=True)
def test_not_ready_while_a_migration_is_missing(client: Any) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("accounts", "0001_initial")
    try:
        answer = client.get("/readyz")
    finally:
        recorder.record_applied("accounts", "0001_initial")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == "1 database migrations are missing: run manage.py migrate."


@pytest.mark.django_db(transaction=True)
async def test_not_ready_while_live_events_do_not_come_through(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*args: Any) -> None:
        return None

    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr("portal.channel_layer.NotifyLayer.group_send", lost)
    status, body = await ask("/readyz")
    assert (status, body["checks"]["live events"]) == (503, "Live events do not come through.")
