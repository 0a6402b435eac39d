"""The report on idle GPUs: what would have been stopped, and by whom GPU-hours stood idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.contrib.messages import get_messages
from django.db.models import Q
from django.test import Client
from django.utils import timezone

from monitoring.figures import thinning
from monitoring.idle import report
from monitoring.models import Figure, IdlePolicy
from quotas.models import Claim
from tests.cast import Cast
from tests.monitoring.idle.lives import MINUTE, NOON, Life, policy
from tests.shared.clients import ask, script
from workspaces.models import Phase

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
LENGTH = 240  # of each of the month's lives, in minutes


def blocks(random: Random, minutes: int) -> list[float]:
    """Use of a GPU by minute: blocks of work and of rest, none of them near the time that is allowed."""
    use: list[float] = []
    works = True
    while len(use) < minutes:
        length = random.choice((20, 30)) if works else random.choice((10, 30, 90, 120))
        use += [random.choice((15.0, 60.0, 98.0)) if works else 0.0] * length
        works = not works
    return use[:minutes]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_on_a_played_month_it_agrees_with_what_idle_reclaim_then_does(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(minutes=60, warning_minutes=10, tenant=cast.demo)
    random, stopped = Random(19), dict[UUID, Any]()
    end = NOON + 2 * DAY
    for day in range(28):
        life = Life(cast, monkeypatch, begin=end - (28 - day) * DAY, name=f"day-{day}")
        use = blocks(random, LENGTH)
        life.measures(LENGTH, gpu=use.__getitem__)
        minute = life.lives(LENGTH, every=5)
        assert life.workspace.run is not None
        if minute is not None:
            stopped[life.workspace.run] = life.begin + minute * MINUTE
        life.workspace.phase = Phase.STOPPED
        life.workspace.save()
        released = life.begin + LENGTH * MINUTE
        Claim.objects.filter(pk=life.workspace.run).update(state="released", released_at=released)
    assert 5 < len(stopped) < 28
    monkeypatch.setattr("django.utils.timezone.now", lambda: end)

    def first_stops() -> dict[UUID, Any]:
        found = report.read(Q(), end, days=30).stops
        return {stop.run: stop.at for stop in sorted(found, key=lambda stop: stop.at, reverse=True)}

    def differences() -> list[Any]:
        """Minutes by which each stop came later than in the report; None: only one of both has it."""
        would = first_stops()
        runs = would.keys() | stopped.keys()
        both = {run: run in would and run in stopped for run in runs}
        return [(stopped[run] - would[run]) / MINUTE if both[run] else None for run in runs]

    assert all(late is not None and 0 <= late <= 10 for late in differences()), differences()
    at_once = tuple(replace(level, at_once_seconds=thinning.DAY) for level in thinning.LEVELS)
    monkeypatch.setattr(thinning, "LEVELS", at_once)
    while not thinning.thin(end.timestamp()):
        pass
    assert Figure.objects.filter(step_seconds=600).exists()
    assert all(late is not None and -10 <= late <= 20 for late in differences()), differences()


@pytest.fixture
def idle_day(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """Ten hours without use, of bob's in demo."""
    life = Life(cast, monkeypatch)
    life.measures(600)
    life.now = NOON + 600 * MINUTE
    assert life.workspace.run is not None
    Claim.objects.filter(pk=life.workspace.run).update(released_at=life.now, state="released")
    life.now = NOON + DAY
    yield life


def test_it_says_what_a_policy_would_free(idle_day: Life) -> None:
    policy(minutes=240)
    found = report.read(Q(), timezone.now())
    assert [stop.at for stop in found.stops] == [NOON + timedelta(hours=4)]
    assert found.assumed_minutes is None and not found.is_cut
    assert found.total.freed_gpu_hours == pytest.approx(6, abs=0.1)
    assert found.total.held_gpu_hours == pytest.approx(10, abs=0.1)
    assert [(one.tenant, one.user, one.stops) for one in found.people] == [("demo", "bob", 1)]


def test_without_a_policy_it_assumes_one(idle_day: Life) -> None:
    assert report.read(Q(), timezone.now()).assumed_minutes == 120
    found = report.read(Q(), timezone.now(), minutes=300)
    assert (found.assumed_minutes, found.stops[0].at) == (300, NOON + timedelta(hours=5))


def test_a_policy_that_is_off_is_no_stop(idle_day: Life, cast: Cast) -> None:
    policy(tenant=cast.demo, is_active=False)
    found = report.read(Q(), timezone.now())
    assert (found.total.stops, found.assumed_minutes) == (0, None)


def test_owners_see_their_tenant_members_their_own_and_others_nothing(idle_day: Life, cast: Cast) -> None:
    seen = {
        name: ask(script(getattr(cast, name)), "GET", "idle/report/?days=30").json()
        for name in ("alice", "bob", "victor", "carol", "admin")
    }
    assert {name: len(body["results"]) for name, body in seen.items()} == {
        "alice": 1, "bob": 1, "victor": 0, "carol": 0, "admin": 1,
    }  # fmt: skip
    body = seen["alice"]
    assert body["stops"] == 1 and body["freed_gpu_hours"] == pytest.approx(8, abs=0.1)
    row = body["results"][0]
    assert (row["name"], row["owner"], row["gpus"], row["pool"]) == ("exp-1", "bob", 1, "a100")
    assert row["would_stop_at"] == (NOON + timedelta(hours=2)).isoformat().replace("+00:00", "Z")
    assert body["people"][0]["owner"] == "bob" and body["tenants"][0]["tenant"] == "demo"


def test_the_page_shows_stops_and_to_owners_the_ranking(idle_day: Life, cast: Cast, client: Client) -> None:
    for name, ranks in (("alice", True), ("bob", False)):
        client.force_login(getattr(cast, name).user)
        page = client.get("/idle/")
        assert page.status_code == 200
        assert str(idle_day.workspace.run) in page.content.decode()
        assert ('aria-labelledby="people"' in page.content.decode()) == ranks
    assert client.get("/idle/?minutes=soon").status_code == 422


def test_an_admin_who_saves_a_policy_reads_what_it_would_have_done(
    idle_day: Life, cast: Cast, client: Client
) -> None:
    client.force_login(cast.admin.user)
    fields = {
        "minutes": 240, "warning_minutes": 10, "gpu_percent": 5, "cpu_cores": 0.25, "time_zone": "Europe/Berlin",
        "is_active": "on",
    }  # fmt: skip
    answer = client.post("/admin/monitoring/idlepolicy/add/", fields)
    assert answer.status_code == 302
    assert any("6" in str(message) for message in get_messages(answer.wsgi_request))
    assert IdlePolicy.objects.get().minutes == 240
    wrong = client.post("/admin/monitoring/idlepolicy/add/", fields | {"time_zone": "Mars/Olympus"})
    assert wrong.status_code == 200 and IdlePolicy.objects.count() == 1
