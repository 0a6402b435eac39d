"""Looks at the workspaces of one cluster, in the process that watches it: threads that take work from the lanes.

What happens reaches the lanes on three ways: the watch reports a change, another process marks a row (NOTIFY), or the
clock finds a row that has not settled. Nothing is remembered: a new process begins with all rows that may need a look.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
from django.db import InterfaceError, OperationalError, connection, connections
from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.transport import Json
from workspaces.cluster.observe import TROUBLE_REASONS, going
from workspaces.enqueue import CHANNEL
from workspaces.models import Phase, Workspace
from workspaces.naming import workspace_of

from .lanes import Lane, Lanes
from .reconcile import reconcile

log = logging.getLogger(__name__)

THREADS = 4
BATCH = 8
TICK_SECONDS = 5.0
# Ticks between looks at a quiet transition, spread by id. Workspaces in trouble or ending are looked at each tick.
TICKS_BETWEEN_LOOKS = 6
# A step that takes longer is not only looked at but read from the cluster: its watch may be silent.
QUIET_AFTER = timedelta(seconds=20)
IN_TRANSITION = (Phase.STARTING, Phase.STOPPING, Phase.DELETING)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 15.0
AWAY_SECONDS = 1.0


class Reconciler:
    """Work beside one cluster's mirror. It begins when the mirror is complete."""

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        self._cluster, self._mirror = cluster, mirror
        self.lanes = Lanes()
        self._complete = threading.Event()
        self._stopped = threading.Event()
        self._woken = threading.Event()  # by a list, or by the end
        self._urgent: set[UUID] = set()  # a person waits for what happens to these
        self._failures: dict[UUID, int] = {}
        self._quiet: set[UUID] = set()  # in a step that takes long
        names = [("marks", self._listen), ("clock", self._tick), *[("looks", self._look)] * THREADS]
        self._threads = [
            threading.Thread(
                target=self._until_stopped, args=[step], name=f"{cluster.slug}/{name}", daemon=True
            )
            for name, step in names
        ]

    # --- called by the watch

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
        self.lanes.close()

    def join(self, timeout: float | None = None) -> None:
        end = time.monotonic() + (timeout or 0.0)
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

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

    def _until_stopped(self, step: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            try:
                step()
                continue
            except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
                log.warning("%s: the database is away: %s", self._cluster.slug, error)
            except Exception:
                log.exception("%s: a fault, tried again", self._cluster.slug)
            connection.close()
            self._stopped.wait(AWAY_SECONDS)
        connection.close()

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
        with listening() as heard:
            self.lanes.add_all(
                self._rows().filter(dirty_since__isnull=False).values_list("pk", flat=True), Lane.GOES_ON
            )
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


def listening() -> psycopg.Connection[tuple[str, ...]]:
    """Return a connection of its own that hears marks."""
    parameters = connections["default"].get_connection_params()
    own = {
        key: value for key, value in parameters.items() if key not in ("cursor_factory", "context", "pool")
    }
    heard = psycopg.connect(**own, autocommit=True)
    heard.execute(f"LISTEN {CHANNEL}")
    return heard
