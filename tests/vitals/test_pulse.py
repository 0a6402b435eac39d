"""Signs of life: by the database's clock, one row for each process, at once and then every few seconds."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, connections
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.signals import tick
from vitals import pulse
from vitals.clock import is_near_now
from vitals.figures import Gauge
from vitals.models import Process
from vitals.pulse import Pulse

OPEN = Gauge("test_doors_open", "Of a test.")


@pytest.mark.django_db(transaction=True)
def test_the_first_beat_comes_at_once_and_the_next_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(pulse, "time", SimpleNamespace(monotonic=lambda: now[0]))
    beats = Pulse("worker")
    beats.step()
    [first] = Process.objects.all()
    assert (first.part, first.host, first.pid) == ("worker", socket.gethostname(), os.getpid())
    Process.objects.update(seen_at=Now() - timedelta(hours=1))
    now[0] += pulse.BEAT_SECONDS - 1
    with CaptureQueriesContext(connection) as queries:
        beats.step()
    assert not queries.captured_queries
    now[0] += 1
    beats.step()
    [again] = Process.objects.all()
    assert timezone.now() - again.seen_at < timedelta(seconds=10)


@pytest.mark.django_db
def test_what_a_process_has_open_comes_with_its_sign_of_life() -> None:
    OPEN.add(3)
    OPEN.add(-1)
    pulse.beat("web")
    assert Process.objects.get().gauges["test_doors_open"] == 2
    OPEN.add(-2)


@pytest.mark.django_db
def test_a_part_is_heard_since_its_first_process_as_long_as_there_is_no_gap() -> None:
    pulse.beat("worker")
    began = Now() - timedelta(minutes=10)
    Process.objects.create(part="web", host="other", pid=1, seen_at=Now() - timedelta(seconds=5), since=began)
    pulse.beat("web")  # a second process, before the first ends
    Process.objects.filter(host="other").update(seen_at=Now() - timedelta(minutes=1))
    pulse.beat("web")
    assert timezone.now() - pulse.heard_since("web") > timedelta(minutes=9)
    Process.objects.filter(part="web").update(seen_at=Now() - timedelta(minutes=1))
    pulse.beat("web")
    assert timezone.now() - pulse.heard_since("web") < timedelta(minutes=1)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_logged_once_and_beats_go_on_afterwards(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(_: str) -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0)
    beats = Pulse("worker")
    with monkeypatch.context() as while_away:
        while_away.setattr(pulse, "beat", away)
        beats.step()
        beats.step()
    assert caplog.text.count("the database is away") == 1
    beats.step()
    assert Process.objects.filter(part="worker").exists()


@pytest.mark.django_db
def test_signs_of_an_earlier_run_on_this_machine_are_forgotten_and_no_others() -> None:
    pulse.beat("worker")
    Process.objects.create(part="worker", host="another-machine", pid=7, seen_at=Now())
    pulse.forget_here()
    assert [each.host for each in Process.objects.all()] == ["another-machine"]


@pytest.mark.django_db
def test_processes_that_are_gone_for_a_day_are_forgotten() -> None:
    for hours in (-30, -1, 0, 23, 25):
        heard = Now() - timedelta(hours=hours)
        Process.objects.create(part="worker", host="a-machine", pid=100 + hours, seen_at=heard)
    tick.send(sender=None)
    assert {each.pid for each in Process.objects.all()} == {99, 100, 123}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ago_seconds", "is_about_now"), [(0, True), (14, True), (16, False), (-14, True), (-3600, False)]
)
def test_a_time_far_in_the_future_is_not_now(ago_seconds: int, is_about_now: bool) -> None:
    now = timezone.now()
    Process.objects.create(part="web", host="a", pid=1, seen_at=now - timedelta(seconds=ago_seconds))
    assert Process.objects.filter(is_near_now("seen_at", now, timedelta(seconds=15))).exists() is is_about_now


@pytest.mark.django_db(transaction=True)
async def test_an_event_loop_beats_while_its_context_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.01)
    async with pulse.beating("web"):
        while not await Process.objects.filter(part="web").aexists():
            await asyncio.sleep(0.01)
    await Process.objects.all().adelete()
    await asyncio.sleep(0.1)
    assert not await Process.objects.aexists()
    await sync_to_async(connections.close_all)()
