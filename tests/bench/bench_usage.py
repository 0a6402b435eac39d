"""GPU-hours of a month, held and used: 1,000 runs that ended, and 200 GPUs that were held all of it"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

from tests.bench import Figure
from tests.bench.helpers.parts import installation, manage, spread

TIMES = 10
RUNS, HELD_ALL_MONTH, GPUS_ALL_MONTH = 1000, 200, 8
# Older tracks and claims: as many as a year leaves.
OLD = 20_000
ROWS = """
    INSERT INTO monitoring_figure
    SELECT track.id, at, 40000, 50000 + at %% 7919, step, greatest(1, step / 5), 300, 60
    FROM monitoring_track AS track JOIN quotas_claim AS claim ON claim.id = track.runs[1]
    CROSS JOIN LATERAL (VALUES (5, 0, 0, 7200), (60, 60, 7200, 172800), (600, 600, 172800, 2678400))
        AS level (every, step, newest, oldest)
    CROSS JOIN LATERAL generate_series(
        greatest(extract(epoch FROM admitted_at), extract(epoch FROM now()) - oldest)::int / every * every,
        least(extract(epoch FROM released_at), extract(epoch FROM now()) - newest)::int - 1,
        every) AS at
    WHERE claim.released_at > now() - interval '31 days'
"""
SEED = f"""
import random, uuid
from datetime import timedelta
from django.db import connection
from django.utils import timezone
from monitoring.models import Track
from quotas.accounting import ledger
from quotas.models import Claim
from tests.quotas.stage import Stage
chance, now, stage = random.Random(7), timezone.now(), Stage()
claims, tracks = [], []
def had(gpus, days_ago, hours, by):
    since = now - timedelta(days=days_ago)
    claim = Claim(tenant=stage.cast.demo, user=by.user, pool=stage.pool, units=gpus, cpu_millicores=1, memory_mib=1,
        holder_kind="workspace", holder_id=uuid.uuid4(), place=1, state="released", node="gpu-1", admitted_at=since,
        released_at=min(now, since + timedelta(hours=hours)))
    claims.append(claim)
    tracks.extend(Track(key=uuid.uuid4(), cluster=stage.cast.cluster, node="gpu-1", device=f"GPU-{{gpu}}",
        runs=[claim.pk], seen_at=claim.released_at) for gpu in range(gpus))
people = (stage.cast.alice, stage.cast.bob)
for number in range({OLD}):
    had(1, chance.uniform(40, 365), 4, chance.choice(people))
for number in range({RUNS}):
    had(chance.choice((1, 1, 2, 4)), chance.uniform(0, 29), chance.uniform(1, 24), chance.choice(people))
for number in range({HELD_ALL_MONTH // GPUS_ALL_MONTH}):
    had({GPUS_ALL_MONTH}, 30, 24 * 30, chance.choice(people))
Claim.objects.bulk_create(claims, batch_size=1000)
Track.objects.bulk_create(tracks, batch_size=1000)
for claim in claims[{OLD}:]:
    ledger.close(claim)
with connection.cursor() as cursor:
    cursor.execute('''{ROWS}''', [])
    cursor.execute("VACUUM ANALYZE")
"""
ASK = f"""
import json, time
from django.db.models import Q
from django.utils import timezone
from monitoring.figures import busy
from monitoring.models import BusyDay, Figure
from quotas.accounting import report
from quotas.accounting.hours import hours
from quotas.accounting.used import used_hours
now = timezone.now()
asked = report.parse({{}}, now)
def seconds(read, where):
    took = []
    for _time in range({TIMES}):
        began = time.monotonic()
        read(where, asked.first, asked.last, ("user_id", "tenant_id"), now)
        took.append(time.monotonic() - began)
    return took
ended, all_month = ~Q(units={GPUS_ALL_MONTH}), Q(units={GPUS_ALL_MONTH})
took = [seconds(hours, Q()), seconds(used_hours, ended), seconds(used_hours, all_month)]
began = time.monotonic()
busy.sum_up()
took.append([time.monotonic() - began])
took += [seconds(used_hours, ended), seconds(used_hours, all_month)]
print(json.dumps([Figure.objects.count(), BusyDay.objects.filter(run=None).count(), *took]))
"""


def measure() -> Iterator[Figure]:
    with ExitStack() as stack:
        _folder, environ = stack.enter_context(installation())
        manage(environ, "migrate")
        manage(environ, "shell", "-c", SEED)
        kept, days, *took = json.loads(manage(environ, "shell", "-c", ASK).splitlines()[-1])
    held, ended, all_month, summing_up, ended_after, all_month_after = took
    yield Figure("figures that are kept", kept, "rows")
    yield from spread("held, of everybody", held)[:2]
    for what, of_ended, of_all_month in (
        ("as the figures are", ended, all_month),
        ("once days are summed up", ended_after, all_month_after),
    ):
        yield from spread(f"used, {what}, of {RUNS} runs that ended", of_ended)[:2]
        yield from spread(f"used, {what}, of {HELD_ALL_MONTH} GPUs that were held all month", of_all_month)[
            :2
        ]
    yield Figure(f"to sum up {days} days", summing_up[0] * 1000, "ms")
