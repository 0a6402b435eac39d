"""Support for `test_claims_at_once`: signals, the task queue, killed processes, and a clean start."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from django_q.models import OrmQ

from accounts.models import AuditEntry
from clusters.models import Node, PodUsage
from quotas import signals
from quotas.models import Booking, Claim, LedgerEntry, Pool, TenantLimit
from tests.shared.stage import GPU

# Kills any one backend that is in a transaction.
KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND xact_start IS NOT NULL AND NOT pid = ANY(%s) LIMIT 1
"""


class Signalled:
    """Records the signals sent to the room above."""

    def __init__(self) -> None:
        self.admitted: Counter[UUID] = Counter()
        self.released: Counter[UUID] = Counter()
        self.to_stop: set[UUID] = set()
        self._lock = threading.Lock()
        self._receivers = (
            (signals.claim_admitted, self.on_admitted),
            (signals.claim_released, self.on_released),
            (signals.claim_to_stop, self.on_to_stop),
        )
        for signal, receiver in self._receivers:
            signal.connect(receiver)

    def stop(self) -> None:
        for signal, receiver in self._receivers:
            signal.disconnect(receiver)

    def on_admitted(self, claim: Claim, **_: Any) -> None:
        transaction.on_commit(lambda: self.count(self.admitted, claim.pk))

    def on_released(self, claim: Claim, **_: Any) -> None:
        transaction.on_commit(lambda: self.count(self.released, claim.pk))

    def count(self, counter: Counter[UUID], claim_id: UUID) -> None:
        with self._lock:
            counter[claim_id] += 1

    def on_to_stop(self, claim: Claim, **_: Any) -> None:
        assert claim.reclaim_at is not None and claim.reclaim_at <= timezone.now()
        with self._lock:
            self.to_stop.add(claim.pk)


def clear() -> None:
    """Reset the database to its state before the first example."""
    for model in (LedgerEntry, Claim, Booking, PodUsage, OrmQ, AuditEntry, TenantLimit):
        model.objects.all().delete()
    Pool.objects.update(is_open=True, pass_queued_at=None)
    for node in Node.objects.all():
        node.ready, node.allocatable = True, node.allocatable | {GPU: 4}
        node.save()
    for pool in Pool.objects.all():
        pool.quotas.update(nominal_gpus=3, borrowing_limit_gpus=4)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def in_order(claims: Any) -> list[Claim]:
    """Sort live claims first: the first ones are chosen most."""
    return sorted(claims, key=lambda claim: (claim.state == "released", claim.place, claim.created_at))


def take_task() -> str | None:
    """Take the oldest pass from the queue, as a worker does. Return its pool's id."""
    with transaction.atomic():
        row = OrmQ.objects.select_for_update(skip_locked=True).order_by("pk").first()
        if row is None:
            return None
        pool: str = json.loads(row.payload)["args"][0]
        row.delete()
        return pool


def nothing_was_admitted_while_closed(renewed: set[UUID]) -> None:
    """Check with the audit trail, which is written under the lock that passes take."""
    trail = list(AuditEntry.objects.filter(action__in=["pool.open", "pool.close"]).order_by("at"))
    admitted = Claim.objects.exclude(pk__in=renewed).exclude(admitted_at=None)
    for pk, pool, admitted_at in admitted.values_list("pk", "pool_id", "admitted_at"):
        so_far = [
            line.action
            for line in trail
            if line.target_id == str(pool) and line.at < (admitted_at or line.at)
        ]
        assert so_far[-1:] != ["pool.close"], f"{pk} was admitted to a pool that was out of use"


def kill_one_but(backends: list[int]) -> bool:
    """Kill a process in the middle of a transaction. Return False if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(KILL, [backends])
        return cursor.fetchone() is not None


class KilledError(Exception):
    """The process of the operation was killed."""


def until_killed(operation: Callable[..., Any]) -> Callable[..., Any]:
    def killable(**arguments: Any) -> Any:
        try:
            return operation(**arguments)
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if not re.search("terminat|closed|connection", str(error)):
                raise
            raise KilledError from error

    return killable
