"""Runs of a month with their figures, and the seconds that it takes to sum them up."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from monitoring.figures import busy
from monitoring.models import BusyDay, Figure, Track
from quotas.accounting import ledger, report
from quotas.accounting.hours import hours
from quotas.accounting.used import used_hours
from quotas.models import Claim
from tests.shared.stage import Stage

TIMES = 10
RUNS, HELD_ALL_MONTH, GPUS_ALL_MONTH = 1000, 200, 8
# Older tracks and claims: as many as a year leaves.
OLD = 20_000
FIGURES = """
    INSERT INTO monitoring_figure
    SELECT track.id, at, 40000, 50000 + at % 7919, step, greatest(1, step / 5), 300, 60
    FROM monitoring_track AS track JOIN quotas_claim AS claim ON claim.id = track.runs[1]
    CROSS JOIN LATERAL (VALUES (5, 0, 0, 7200), (60, 60, 7200, 172800), (600, 600, 172800, 2678400))
        AS level (every, step, newest, oldest)
    CROSS JOIN LATERAL generate_series(
        greatest(extract(epoch FROM admitted_at), extract(epoch FROM now()) - oldest)::int / every * every,
        least(extract(epoch FROM released_at), extract(epoch FROM now()) - newest)::int - 1,
        every) AS at
    WHERE claim.released_at > now() - interval '31 days'
"""


def seed(old: int = OLD, runs: int = RUNS) -> None:
    """Make `old` runs of the year before, `runs` of this month, and runs that held GPUs all month."""
    chance, stage = random.Random(7), Stage()
    people = (stage.cast.alice.user, stage.cast.bob.user)

    def run(gpus: int, days_ago: float, lasts: float) -> Claim:
        return _run(stage, chance.choice(people), gpus, days_ago, lasts)

    claims = [run(1, chance.uniform(40, 365), 4) for _run in range(old)]
    claims += [
        run(chance.choice((1, 1, 2, 4)), chance.uniform(0, 29), chance.uniform(1, 24)) for _run in range(runs)
    ]
    claims += [run(GPUS_ALL_MONTH, 30, 24 * 30) for _run in range(HELD_ALL_MONTH // GPUS_ALL_MONTH)]
    Claim.objects.bulk_create(claims, batch_size=1000)
    Track.objects.bulk_create((track for claim in claims for track in _tracks(claim)), batch_size=1000)
    for claim in claims[old:]:
        ledger.close(claim)
    connection.cursor().execute(FIGURES)


def _run(stage: Stage, user: User, gpus: int, days_ago: float, lasts: float) -> Claim:
    now = timezone.now()
    since = now - timedelta(days=days_ago)
    return Claim(
        tenant=stage.cast.demo, user=user, pool=stage.pool, units=gpus, cpu_millicores=1, memory_mib=1,
        holder_kind=Claim.Holder.WORKSPACE, holder_id=uuid.uuid4(), place=1, state=Claim.State.RELEASED,
        node="gpu-1", admitted_at=since, released_at=min(now, since + timedelta(hours=lasts)),
    )  # fmt: skip


def _tracks(claim: Claim) -> list[Track]:
    of_run: dict[str, Any] = {"node": claim.node, "runs": [claim.pk], "seen_at": claim.released_at}
    return [
        Track(key=uuid.uuid4(), cluster=claim.pool.cluster, device=f"GPU-{gpu}", **of_run)
        for gpu in range(claim.units)
    ]


def read() -> dict[str, Any]:
    """Return counts of rows, and the seconds of each reading before and after days are summed up."""
    connection.cursor().execute("VACUUM ANALYZE")
    before = _readings()
    began = time.monotonic()
    busy.sum_up()
    return {
        "figures": Figure.objects.count(),
        "days": BusyDay.objects.filter(run=None).count(),
        "before": before,
        "summing up": time.monotonic() - began,
        "after": _readings(),
    }


def _readings() -> dict[str, list[float]]:
    all_month = Q(units=GPUS_ALL_MONTH)
    return {
        "held, of everybody": _seconds(hours, Q()),
        f"used, of {RUNS} runs that ended": _seconds(used_hours, ~all_month),
        f"used, of {HELD_ALL_MONTH} GPUs that were held all month": _seconds(used_hours, all_month),
    }


def _seconds(read_hours: Callable[..., Any], where: Q) -> list[float]:
    now = timezone.now()
    asked, took = report.parse({}, now), []
    for _time in range(TIMES):
        began = time.monotonic()
        read_hours(where, asked.first, asked.last, ("user_id", "tenant_id"), now)
        took.append(time.monotonic() - began)
    return took
