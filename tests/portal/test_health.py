import asyncio
import json
import re
import socket
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now
from django.test import AsyncClient, RequestFactory

from portal import health
from portal.channel_layer import NotifyLayer, connection_parameters
from vitals.models import Process, Release
from vitals.release import RELEASE


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a long timeout, because a healthy part may answer slowly on a busy machine."""
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 30)


async def ask(path: str) -> tuple[int, dict[str, Any]]:
    answer = await AsyncClient().get(path)
    await sync_to_async(connections.close_all)()  # else the test database could not be dropped
    return answer.status_code, json.loads(answer.content)


async def heard(part: str, *, seconds_ago: int) -> None:
    seen_at = Now() - timedelta(seconds=seconds_ago)
    await Process.objects.acreate(part=part, host="a-machine", pid=seconds_ago, seen_at=seen_at)


async def test_the_process_is_healthy_whatever_else_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "connection_parameters", lambda: {"host": "/nowhere"})
    assert await ask("/healthz") == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
async def test_ready_with_database_migrations_live_events_and_all_parts(settings: Any) -> None:
    settings.SSH_JUMP_HOST = "ssh.example"
    for part in ("worker", "queue", "watcher", "collector", "ssh-jump"):
        await heard(part, seconds_ago=8)
    checks = dict.fromkeys(
        ("database", "live events", "worker", "queue", "watcher", "collector", "ssh-jump"), "ok"
    )
    assert await ask("/readyz") == (200, {"status": "ok", "checks": checks})


@pytest.mark.django_db(transaction=True)
async def test_not_ready_while_a_part_is_dead_and_it_says_which() -> None:
    await heard("worker", seconds_ago=500)
    await heard("worker", seconds_ago=45)
    await heard("queue", seconds_ago=1)
    status, body = await ask("/readyz")
    worker = re.fullmatch(r"Not heard for (\d+) seconds\.", body["checks"].pop("worker"))
    assert worker
    assert 45 <= int(worker[1]) < 500
    assert (status, body["checks"]) == (
        503,
        {
            "database": "ok",
            "live events": "ok",
            "queue": "ok",
            "watcher": "Not heard yet.",
            "collector": "Not heard yet.",
        },
    )


@pytest.mark.django_db(transaction=True)
async def test_a_web_process_serves_on_while_other_parts_are_dead() -> None:
    checks = {"database": "ok", "live events": "ok"}
    assert await ask("/readyz/web") == (200, {"status": "ok", "checks": checks})


@pytest.mark.django_db(transaction=True)
async def test_a_crowd_that_asks_at_once_takes_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, made = psycopg.AsyncConnection.connect, []

    async def counted(**parameters: Any) -> Any:
        made.append(parameters)
        return await connect(**parameters)

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", counted)
    request = RequestFactory().get("/readyz/web")
    answers = await asyncio.gather(*(health.readyz_web(request) for _ in range(30)))
    assert {answer.status_code for answer in answers} == {200}
    at_once, of_the_layer = len(made), 1
    assert at_once <= 1 + of_the_layer
    assert (await ask("/readyz/web"))[0] == 200  # and the next caller gets a new answer
    assert len(made) > at_once


@pytest.mark.parametrize(
    ("silent_seconds", "found"),
    [(None, "Not heard yet."), (-3, None), (19, None), (21, "Not heard for 21 seconds.")],
)
def test_a_part_is_dead_when_it_was_silent_for_long(silent_seconds: float | None, found: str | None) -> None:
    assert health.part_problem(silent_seconds) == found


async def test_not_ready_without_the_database_and_silent_about_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = {"host": "/nowhere", "user": "berth", "password": "hunter2", "dbname": "secret-name"}
    monkeypatch.setattr(health, "connection_parameters", lambda: parameters)
    status, body = await ask("/readyz")
    assert (status, body["checks"]) == (503, {"database": "The database does not answer."})
    assert "hunter2" not in str(body)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
async def test_ready_while_one_of_two_servers_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    own = connection_parameters()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = {"host": f"127.0.0.1,{own['host']}", "port": f"{silent.getsockname()[1]},5432"}
        monkeypatch.setattr(health, "connection_parameters", lambda: own | hosts)
        assert (await ask("/readyz/web"))[0] == 200


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
async def test_not_ready_on_a_database_that_takes_newer_releases_alone() -> None:
    await Release.objects.aupdate_or_create(pk=1, defaults={"number": 99, "oldest": RELEASE + 1})
    status, body = await ask("/readyz/web")
    assert (status, body["checks"]) == (
        503,
        {"database": "The database is of a newer release: install that."},
    )


@pytest.mark.django_db(transaction=True)
async def test_not_ready_while_live_events_do_not_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut_off() -> str:
        return "Live events do not come through."

    monkeypatch.setattr(health, "_channel_problem", cut_off)
    status, body = await ask("/readyz")
    assert (status, body["checks"]["live events"]) == (503, "Live events do not come through.")


@pytest.mark.django_db(transaction=True)
async def test_checks_while_live_events_are_cut_off_leave_no_listeners_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = NotifyLayer()
    await layer.group_add("any", "one")  # starts the listener
    monkeypatch.setattr(health, "get_channel_layer", lambda: layer)
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(layer, "publish", lambda groups, message: None)
    assert await health._channel_problem() == "Live events do not come through."
    assert set(layer._members) == {"any"}
