"""Parts of Berth that are dead, and tasks that wait, as sources of alerts: only the portal knows all parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from django.db.models import Max, Min
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ

from monitoring.alerts.firing import Firing
from monitoring.models import Severity
from portal.health import parts_that_matter
from vitals.models import Process

SILENT_AFTER = timedelta(seconds=45)
# After a start of Berth, parts come one after another.
STARTS_WITHIN = timedelta(minutes=2)
TASKS_LATE_AFTER = timedelta(minutes=2)


def firings() -> Iterable[Firing]:
    seen = Process.objects.order_by().values("part").annotate(at=Max("seen_at"))
    last = {row["part"]: row["at"] for row in seen}
    began = Process.objects.aggregate(at=Min("since"))["at"]
    yield from silent_parts(last, began, timezone.now())
    yield from tasks()


def silent_parts(last: Mapping[str, datetime], began: datetime | None, now: datetime) -> Iterator[Firing]:
    """Yield parts that were not heard lately. One that was never heard counts once others have been up for a while."""
    for part in parts_that_matter():
        at = last.get(part)
        if at is None and (began is None or now - began < STARTS_WITHIN):
            continue
        if at is None or now - at > SILENT_AFTER:
            yield Firing(
                key=f"part/{part}",
                code="part_silent",
                data={"part": part},
                severity=Severity.CRITICAL,
                since=at or now,
                name=part,
            )


def tasks() -> Iterator[Firing]:
    """Yield one firing if the first task has waited for long, by the database's clock."""
    waited = OrmQ.objects.filter(lock__lte=Now()).aggregate(span=Now() - Min("lock"))["span"]
    if waited and waited > TASKS_LATE_AFTER:
        minutes = int(waited.total_seconds() // 120) * 2
        yield Firing(
            key="tasks",
            code="tasks_wait",
            data={"minutes": minutes},
            severity=Severity.CRITICAL,
            since=timezone.now() - waited,
        )
