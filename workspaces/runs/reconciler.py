"""Looks at the workspaces of one cluster, in the process that watches it: threads that take work from the lanes.

What happens reaches the lanes on three ways: the watch reports a change, another process marks a row (NOTIFY), or the
clock finds a row that has not settled. Nothing is remembered: a new process begins with all rows that may need a look.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from uuid import UUID

from django.db import InterfaceError, OperationalError, close_old_connections
from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.transport import Json
from clusters.watch.working import AWAY_SECONDS, Working, listening
from workloads.pods.status import going
from workloads.pods.troubles import TROUBLE_REASONS
from workspaces.enqueue import CHANNEL
from workspaces.models import IN_TRANSITION, Phase, Workspace
from workspaces.naming import workspace_of

from .lanes import Lane, Lanes
from .reconcile import reconcile

THREADS = 4
BATCH = 8
TICK_SECONDS = 5.0
# Ticks between looks at a quiet transition, spread by id. Workspaces in trouble or ending are looked at each tick.
TICKS_BETWEEN_LOOKS = 6
# A step that takes longer is not only looked at but read from the cluster: its watch may be silent.
QUIET_AFTER = timedelta(seconds=20)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 15.0


class Reconciler:
    """Work beside one cluster's mirror. It begins when the mirror is complete."""

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        self._cluster, self._mirror = cluster, mirror
        self.lanes = Lanes()
        self._complete = threading.Event()
        self._woken = threading.Event()  # by a list, or by the end
        self._urgent: set[UUID] = set()  # a person waits for what happens to these
        self._failures: dict[UUID, int] = {}
        self._quiet: set[UUID] = set()  # in a step that takes long
        steps = [("marks", self._listen), ("clock", self._tick), *[("looks", self._look)] * THREADS]
        self._work = Working(cluster.slug, steps)
        self._stopped = self._work.stopped

    # --- called by the watch

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
        self.lanes.close()

    def join(self, timeout: float | None = None) -> None:
        self._work.join(timeout)

    def listed(self) -> None:
        self._complete.set()
        self._woken.set()

    def changed(self, change: str, body: Json) -> None:
        is_event = body["kind"] == "Event"
        if is_event and body.get("reason") not in TROUBLE_REASONS:
            return
        if (workspace := workspace_of(body)) is None:
            return
        urgent = workspace in self._urgent
        lane = Lane.PERSON if urgent else Lane.GOES_ON
        has_ended = change == "DELETED" or (body["kind"] == "Pod" and going(body))
        if has_ended or (urgent and not is_event):
            self.lanes.add(workspace, lane)
        else:
            self.lanes.add_noise(workspace, lane)

    # --- the threads

    def _look(self) -> None:
        if not self._complete.wait(AWAY_SECONDS):
            return
        # A fair share: a call that hangs holds up the rest of its batch, and so as few as there is need for.
        share = min(BATCH, max(1, sum(self.lanes.waiting()) // THREADS))
        taken = self.lanes.take(share, timeout_seconds=AWAY_SECONDS)
        open_ones = set(taken)
        try:
            quiet = {pk for pk in taken if pk in self._quiet}
            self._quiet -= quiet
            for workspace, is_done in reconcile(taken, self._mirror, quiet):
                open_ones.discard(workspace.pk)
                self._note(workspace, is_done=is_done)
        except (OperationalError, InterfaceError):
            for pk in open_ones:
                self.lanes.add(pk, Lane.GOES_ON, after_seconds=AWAY_SECONDS)
            raise
        finally:
            self.lanes.done(taken)

    def _note(self, workspace: Workspace, *, is_done: bool) -> None:
        """Remember if a person waits for it, and look again later at what could not be done."""
        pk = workspace.pk
        is_waited_for = workspace.phase in (Phase.STARTING, Phase.STOPPING) and not workspace.troubles
        self._urgent.add(pk) if is_waited_for else self._urgent.discard(pk)
        if is_done:
            self._failures.pop(pk, None)
            return
        failures = self._failures[pk] = self._failures.get(pk, -1) + 1
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures, 8))
        self.lanes.add(pk, Lane.GOES_ON, after_seconds=pause)

    def _listen(self) -> None:
        """Hear of marks, and begin with those that came before."""
        with listening(CHANNEL) as heard:
            self.lanes.add_all(
                self._rows().filter(dirty_since__isnull=False).values_list("pk", flat=True), Lane.GOES_ON
            )
            close_old_connections()
            while not self._stopped.is_set():
                for notice in heard.notifies(timeout=AWAY_SECONDS, stop_after=1):
                    cluster, urgent, workspace = notice.payload.split()
                    if cluster == str(self._cluster.pk):
                        self._heard(UUID(workspace), urgent=urgent == "1")

    def _heard(self, workspace: UUID, *, urgent: bool) -> None:
        if urgent:
            self._urgent.add(workspace)  # before the look, during which the cluster may answer
        self.lanes.add(workspace, Lane.PERSON if urgent else Lane.GOES_ON)

    def _tick(self) -> None:
        """Look at what has not settled; after a list, at all that is to run or whose run is ending."""
        relisted = self._woken.wait(TICK_SECONDS)
        if self._stopped.is_set() or not self._complete.is_set():
            return
        self._woken.clear()
        if Cluster.objects.filter(pk=self._cluster.pk, unreachable_since__isnull=False).exists():
            return  # what is marked or in transition is looked at when it is back
        rows, tick = self._rows(), int(time.time() / TICK_SECONDS)
        if relisted:
            live = rows.filter(Q(desired="running") | ~Q(ending=""), deleted_at__isnull=True)
            moving = live.filter(~Q(phase=Phase.READY)).values_list("pk", flat=True)
            self.lanes.add_all(moving, Lane.GOES_ON)
            self.lanes.add_all(live.values_list("pk", flat=True), Lane.CAN_WAIT)
        unsettled = rows.filter(Q(phase__in=IN_TRANSITION) | ~Q(ending="") | Q(dirty_since__isnull=False))
        fields = unsettled.values_list("pk", "dirty_since", "troubles", "ending", "step_since")
        long_ago = timezone.now() - QUIET_AFTER
        for pk, dirty, troubles, ending, step_since in fields:
            is_its_turn = pk.int % TICKS_BETWEEN_LOOKS == tick % TICKS_BETWEEN_LOOKS
            if is_its_turn and step_since < long_ago:
                self._quiet.add(pk)
            if dirty or troubles or ending or is_its_turn:
                self.lanes.add_noise(pk, Lane.GOES_ON if dirty else Lane.CAN_WAIT)

    def _rows(self) -> QuerySet[Workspace]:
        return Workspace.objects.filter(pool__cluster=self._cluster).order_by()
