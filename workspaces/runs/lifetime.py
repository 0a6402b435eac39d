"""Lifetimes of runs: the owner is warned before the end, then the run is stopped; files stay.

The clock starts when the run is ready: time in the queue or for the pull of an image does not count. The clock is in
the row, so it outlives every process, and a run that was interrupted and came back continues on it. An extension and a
stop lock the same row: the later one sees what the first one did.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import NoReturn
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, QuerySet, Value
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid
from quotas import admission, ends, reasons
from quotas.ends import Bound
from quotas.models import Claim
from quotas.pool_state import START_MARGIN
from workloads import longest
from workspaces import enqueue
from workspaces.access import require_manage
from workspaces.models import Desired, Event, Step, Workspace
from workspaces.state import runs
from workspaces.state.live import changing
from workspaces.state.story import add_event

from . import lifecycle

MINUTE = timedelta(minutes=1)
# Steps in which the user's own programs run: the time that they take is up to the user.
PROGRAMS_RUN = (Step.ENDPOINT, Step.READY)
WARN_BEFORE = (timedelta(minutes=30), timedelta(minutes=5))


def first_due(now: datetime, stops_at: datetime) -> datetime:
    """Time of the first warning: the earliest of WARN_BEFORE in the second half of the time left, else the middle."""
    left = stops_at - now
    return stops_at - next((before for before in WARN_BEFORE if 2 * before <= left), left / 2)


def due_after_warning(now: datetime, stops_at: datetime) -> datetime:
    """Time of the next warning, or of the end."""
    left = stops_at - now
    return stops_at - next((before for before in WARN_BEFORE if 2 * before <= left), timedelta())


# --- The clock of a row. Inside `changing`, under the cluster's admission lock: the queue plans by it.


def begin(row: Workspace) -> None:
    """Start the clock of a run that is ready, unless it has no lifetime or its clock runs already."""
    claim = runs.claim_of(row, Claim.State.ADMITTED)
    if claim is None or row.stops_at not in (None, claim.must_end_at):
        return
    runs.fit_lifetime(row)
    if row.max_runtime_minutes is None or row.ready_at is None:
        return
    stops_at = row.ready_at + timedelta(minutes=row.max_runtime_minutes)
    if claim.ends_at is not None and stops_at > claim.ends_at and (bound := ends.bound(claim)):
        # The start took longer than planned, or the run was restarted: end later than promised only within the bound.
        stops_at = min(stops_at, max(bound.until, claim.ends_at))
    end_at(row, stops_at)


def end_at(row: Workspace, stops_at: datetime | None) -> None:
    """Set the end of the run. None: no end."""
    if stops_at is None:
        runs.stop_clock(row)
    else:
        keep_to(row, stops_at)
    if row.run is not None:
        admission.move_end(row.run, stops_at)


def keep_to(row: Workspace, stops_at: datetime) -> None:
    row.stops_at = stops_at
    row.lifetime_due_at = first_due(timezone.now(), stops_at)


# --- Warnings and stops that are due


def pass_due() -> None:
    """Warn and stop the workspaces that are due. A late or second call does the same."""
    now = timezone.now()
    for due in (Workspace.objects.filter(lifetime_due_at__lte=now), never_ready(now)):
        for workspace_id, cluster_id in due.values_list("pk", "pool__cluster_id"):
            act(workspace_id, cluster_id)


def never_ready(now: datetime) -> QuerySet[Workspace]:
    """Starts whose programs did not answer for a lifetime and START_MARGIN, so that no clock began."""
    lifetime = ExpressionWrapper(F("max_runtime_minutes") * Value(MINUTE), output_field=DurationField())
    starting = Workspace.objects.filter(
        desired=Desired.RUNNING, ending="", step__in=PROGRAMS_RUN, ready_at=None, stops_at=None
    )
    return starting.filter(step_since__lte=now - START_MARGIN - lifetime)


def act(workspace_id: UUID, cluster_id: UUID) -> None:
    with transaction.atomic():
        admission.lock(cluster_id)
        with changing(workspace_id) as row:
            now = timezone.now()
            if row.stops_at is None or row.lifetime_due_at is None:
                if not never_ready(now).filter(pk=row.pk).exists():
                    return  # somebody stopped it meanwhile
            elif now < row.lifetime_due_at:
                return  # somebody extended it meanwhile
            elif now < row.stops_at:
                minutes = ceil((row.stops_at - now) / MINUTE)
                add_event(row, "stops_soon", level=Event.Level.WARNING, minutes=minutes)
                row.lifetime_due_at = due_after_warning(now, row.stops_at)
                return
            add_event(row, "stopped_by_lifetime", level=Event.Level.WARNING)
            has_run = runs.stop(row)
    if has_run:
        enqueue.reconcile([workspace_id])


# --- Extend


def extend(actor: Actor, workspace: Workspace, minutes: int | None = None) -> bool:
    """Move the end by `minutes`, or by the lifetime once more. Return False if nothing ends the run."""
    with lifecycle.allowed(actor, workspace, "extend"):
        require_manage(actor, workspace)
        refuse_too_long(minutes, "minutes")
    with lifecycle.audited_change(actor, workspace, "extend", {"minutes": minutes}) as row:
        if row.desired != Desired.RUNNING:
            raise Conflict(
                "not_running",
                _("It is not running, so its end cannot be changed."),
                _("Start it: its lifetime then starts again."),
            )
        if row.stops_at is None and row.max_runtime_minutes is None:
            return False
        if row.stops_at is None:
            raise Conflict(
                "clock_not_running",
                _("Its lifetime starts when it is ready."),
                _("Extend it then, or change its lifetime in its settings."),
            )
        more = minutes or row.max_runtime_minutes
        if more is None:
            raise Invalid(
                "minutes_required",
                _("It has no lifetime that could be extended."),
                _("Enter the number of minutes."),
                fields={"minutes": [_("Enter a number of minutes.")]},
            )
        now = timezone.now()
        stops_at = max(row.stops_at, now) + timedelta(minutes=more)
        refuse_too_long(ceil((stops_at - now) / MINUTE), "minutes")
        end_at(row, allowed(row, stops_at))
        add_event(row, "extended", by=actor.user.get_username(), minutes=more)
    return True


def allowed(row: Workspace, stops_at: datetime | None) -> datetime | None:
    """Return the end that is allowed, or raise a Conflict. None: no end.

    A run must not reach into what is kept for others, nor exceed its tenant's longest runtime. Its present end stays
    allowed. An end that is less than a minute too late is corrected.
    """
    bound = first_bound(row)
    if bound is None or (stops_at is not None and stops_at <= max(bound.until, row.stops_at or bound.until)):
        return stops_at
    if stops_at is None or stops_at - bound.until >= MINUTE:
        refuse_after(bound)
    return bound.until


def first_bound(row: Workspace) -> Bound | None:
    claim = runs.claim_of(row, Claim.State.ADMITTED)
    if claim is None:
        return None
    bounds = [ends.bound(claim)]
    minutes = longest.longest_of(row.tenant)
    if minutes is not None and claim.admitted_at is not None:
        began = row.ready_at or claim.admitted_at + START_MARGIN  # the latest: the queue plans by it
        bounds.append(Bound(began + timedelta(minutes=minutes), "longest_runtime"))
    return min((bound for bound in bounds if bound is not None), default=None)


def refuse_after(bound: Bound) -> NoReturn:
    at = date_format(timezone.localtime(bound.until), "SHORT_DATETIME_FORMAT")
    raise Conflict(
        bound.code,
        _("It may run until %(time)s at most. %(why)s")
        % {"time": at, "why": reasons.sentence(bound.code, {})},
        _("Choose less time, or save what you need: files are kept, and you can start it again later."),
        fields={"minutes": [_("Until %(time)s at most.") % {"time": at}]},
    )


def refuse_too_long(minutes: int | None, field: str) -> None:
    if minutes is not None and not 1 <= minutes <= longest.LONGEST_MINUTES:
        text = _("A lifetime ends a minute to a year from now.")
        raise Invalid("lifetime_too_long", text, _("Give fewer minutes."), fields={field: [text]})
