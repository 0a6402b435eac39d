"""Tasks of django-q2, a few lines each; and the marks that enqueue a reconcile.

A mark outlives every crash: only a reconcile that began after it clears it. A starting worker enqueues what the one
before it may have died with, and the periodic pass enqueues workspaces that stay marked for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django_q.tasks import async_task

from accounts.locks import locked
from vitals.clock import is_near_now

from .models import Phase, Workspace

TICK_SECONDS = 5
# Ticks between looks at a quiet transition, spread by id. Workspaces in trouble or ending are looked at each tick.
TICKS_BETWEEN_LOOKS = 6
LOST_AFTER = timedelta(seconds=15)
# More than all workers together take from the queue at once.
IN_HAND_AT_MOST = 100
IN_TRANSITION = (Phase.STARTING, Phase.STOPPING, Phase.DELETING)


def reconcile(ids: Iterable[UUID], *, warned: Iterable[UUID] = ()) -> None:
    """Enqueue a reconcile for each, once however often it is marked meanwhile: something about these may have changed.

    `warned`: those among them for which the cluster reported a trouble.
    """
    if not (ids := list(ids)):
        return
    with transaction.atomic():
        # Lock before the decision, because a concurrent look may be settling.
        marked = dict(locked(Workspace.objects.filter(pk__in=ids)).values_list("pk", "dirty_since"))
        Workspace.objects.filter(pk__in=marked).update(
            dirty_marks=F("dirty_marks") + 1, warned=Q(warned=True) | Q(pk__in=list(warned))
        )
        _enqueue([pk for pk, dirty_since in marked.items() if dirty_since is None])


def _enqueue(ids: list[UUID]) -> None:
    Workspace.objects.filter(pk__in=ids).update(dirty_since=timezone.now())
    _enqueue_looks(ids)


def _enqueue_looks(ids: Iterable[UUID]) -> None:
    for workspace_id in ids:
        async_task("workspaces.tasks.reconcile", str(workspace_id), group="reconcile")


def again(workspace_id: UUID) -> None:
    """Enqueue a marked workspace again."""
    _enqueue([workspace_id])


def on_worker_began(**_: object) -> None:
    """Enqueue the oldest marks: tasks are taken in the order of the marks, so those of a dead worker are among them.

    A workspace whose task is still queued is looked at only once: the second task finds its mark answered.
    """
    marked = Workspace.objects.filter(dirty_since__isnull=False).order_by("dirty_since", "pk")
    _enqueue_looks(marked.values_list("pk", flat=True)[:IN_HAND_AT_MOST])


def periodic_pass(tick: int) -> None:
    """Enqueue what might have been missed: marks that nobody answered, troubles that run out, quiet transitions.

    Workspaces in a cluster that does not answer come when it answers again.
    """
    with transaction.atomic():
        marked = Q(dirty_since__isnull=False, pool__cluster__unreachable_since__isnull=True)
        lost = Workspace.objects.filter(marked & ~is_near_now("dirty_since", timezone.now(), LOST_AFTER))
        _enqueue(list(locked(lost).values_list("pk", flat=True)))
    quiet = Q(dirty_since__isnull=True, pool__cluster__unreachable_since__isnull=True)
    rows = Workspace.objects.filter(quiet, Q(phase__in=IN_TRANSITION) | ~Q(ending=""))
    reconcile(
        pk
        for pk, troubles, ending in rows.values_list("pk", "troubles", "ending")
        if troubles or ending or pk.int % TICKS_BETWEEN_LOOKS == tick % TICKS_BETWEEN_LOOKS
    )
