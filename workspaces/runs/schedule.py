"""Weekly schedules of workspaces: set by their owners, carried out on the tick; files stay.

A look decides under the workspace's lock and moves `due_at` in the same transaction. So what is due happens once,
however many processes look, and what was missed while all were away is made up by its last turn. A start that finds no
room leaves the queue after weekly.PATIENCE; a stop is announced weekly.WARNING before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, time
from uuid import UUID
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import override

from accounts.access import Actor
from accounts.announcements.showing import refuse_in_maintenance
from accounts.errors import Invalid, NotAllowed, NotThere, Refusal
from accounts.locks import locked
from accounts.models import Tenant, valid_time_zone
from accounts.trail import audit
from quotas import admission
from quotas.allowed import storage
from workspaces import enqueue
from workspaces.access import require_own
from workspaces.models import Desired, Event, Phase, Schedule, Workspace
from workspaces.state import runs
from workspaces.state.live import changing
from workspaces.state.story import add_event

from . import lifecycle, weekly
from .weekly import Act, Known, Turn, Week

log = logging.getLogger(__name__)

MOST_AT_ONCE = 200  # in one tick


def of(workspace: Workspace) -> Schedule | None:
    return Schedule.objects.filter(workspace=workspace).first()


def week_of(schedule: Schedule) -> Week:
    zone = ZoneInfo(schedule.time_zone)
    return Week(start=schedule.start, stop=schedule.stop, days=frozenset(schedule.days), zone=zone)


def next_turn(schedule: Schedule, workspace: Workspace) -> Turn | None:
    """Return its next start or stop; None while it is off."""
    known = _known(schedule, workspace)
    return weekly.coming(week_of(schedule), known, timezone.now()) if schedule.is_on else None


# --- Set by the owner


def put(
    actor: Actor,
    workspace: Workspace,
    *,
    start: time,
    stop: time,
    days: Sequence[int],
    time_zone: str,
    is_on: bool = True,
) -> Schedule:
    """Set the schedule, from now on: what would have been earlier today is not made up."""
    with lifecycle.allowed(actor, workspace, "schedule"):
        require_own(actor, workspace)
        lifecycle.refuse_deleted(workspace)
        _refuse_faulty(start, stop, days, time_zone)
    now = timezone.now()
    values = {"start": start, "stop": stop, "days": sorted(set(days)), "time_zone": time_zone, "is_on": is_on}
    with transaction.atomic():
        values["done_until"] = now
        row, _is_new = Schedule.objects.update_or_create(workspace=workspace, defaults=values)
        _keep(row, weekly.begun(week_of(row), _known(row, workspace), now), is_over=False)
        data = {"times": str(row), "days": row.days, "on": is_on}
        audit.record(actor, "workspace.schedule", target=workspace, tenant=workspace.tenant, data=data)
    return row


def remove(actor: Actor, workspace: Workspace) -> None:
    with lifecycle.allowed(actor, workspace, "schedule"):
        require_own(actor, workspace)
    with transaction.atomic():
        if not Schedule.objects.filter(workspace=workspace).delete()[0]:
            raise no_schedule()
        audit.record(actor, "workspace.unschedule", target=workspace, tenant=workspace.tenant)


def no_schedule() -> NotThere:
    return NotThere("no_schedule", _("This workspace has no schedule."), _("Set one first."))


def _refuse_faulty(start: time, stop: time, days: Sequence[int], time_zone: str) -> None:
    fields: dict[str, list[str]] = {}
    length = (stop.hour * 60 + stop.minute - start.hour * 60 - start.minute) % (24 * 60)
    if length * 60 < weekly.SHORTEST.total_seconds():
        fields["stop"] = [_("It must run for at least 30 minutes.")]
    if not days or not set(days) <= set(range(1, 8)):
        fields["days"] = [_("Choose at least one day: 1 is Monday, 7 is Sunday.")]
    try:
        valid_time_zone(time_zone)
    except ValidationError as error:
        fields["time_zone"] = [str(error.message)]
    if fields:
        text = _("This schedule cannot be set.")
        raise Invalid("invalid", text, _("Correct the named fields."), fields=fields)


# --- Carried out


def pass_due() -> None:
    """Take the next step of all schedules that are due. A late or second call does the same."""
    due = Schedule.objects.filter(due_at__lte=timezone.now()).order_by("due_at")
    rows = due.values_list("workspace", "workspace__pool__cluster", "workspace__tenant")
    for workspace_id, cluster_id, tenant_id in rows[:MOST_AT_ONCE]:
        try:
            act(workspace_id, cluster_id, tenant_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("the schedule of workspace %s could not be carried out", workspace_id)


def act(workspace_id: UUID, cluster_id: UUID, tenant_id: UUID, now: datetime | None = None) -> None:
    """Do what is due for one workspace. A start that is refused is reported instead."""
    now = now or timezone.now()
    try:
        _act(workspace_id, cluster_id, tenant_id, now)
    except Refusal as refusal:
        _act(workspace_id, cluster_id, tenant_id, now, refused=refusal)


def _act(
    workspace_id: UUID, cluster_id: UUID, tenant_id: UUID, now: datetime, refused: Refusal | None = None
) -> None:
    has_run = False
    with transaction.atomic():
        admission.lock(cluster_id)
        storage.lock(Tenant.objects.get(pk=tenant_id))  # a start may make a home
        with changing(workspace_id) as row:
            due = Schedule.objects.filter(workspace=row, is_on=True, due_at__lte=now)
            schedule = locked(due).first()
            if schedule is None:
                return  # another process did it, or its owner changed it meanwhile
            what, known = weekly.decide(week_of(schedule), _known(schedule, row), now)
            if what == Act.START and refused is not None:
                add_event(row, "schedule_refused", level=Event.Level.WARNING, reason=refused.message)
                known = _known(schedule, row, done_until=now)
                schedule.is_on = not isinstance(refused, NotAllowed)  # its owner has no right to it any more
            else:
                has_run = _do(what, row, known)
            _keep(schedule, known, is_over=row.desired == Desired.DELETED)
    if has_run:
        enqueue.reconcile([workspace_id])


def _known(schedule: Schedule, row: Workspace, done_until: datetime | None = None) -> Known:
    runs_now = row.desired == Desired.RUNNING
    return Known(
        done_until=done_until or schedule.done_until,
        stops_at=schedule.stops_at,
        waits_until=schedule.waits_until,
        by_hand_at=schedule.by_hand_at,
        runs=runs_now,
        is_waiting=runs_now and row.phase == Phase.WAITING and not row.ending,
    )


def _do(what: Act, row: Workspace, known: Known) -> bool:
    """Carry it out. Return True if a run is to be taken down."""
    if row.desired == Desired.DELETED:
        return False
    if what == Act.START:
        with override(row.owner.language or "en"):  # a refusal is kept in the words that its owner reads
            owner = Actor(row.owner)
            require_own(owner, row)
            if not row.owner.is_active:
                text = _("%(owner)s was deactivated.") % {"owner": row.owner.get_username()}
                raise NotAllowed("deactivated", text, _("Ask an admin to activate them."))
            refuse_in_maintenance(owner)
            lifecycle.begin(row, "started_by_schedule")
        audit.record(None, "workspace.start-by-schedule", target=row, tenant=row.tenant)
    elif what == Act.WARN:
        assert known.stops_at is not None
        until = known.stops_at.isoformat()
        add_event(row, "schedule_stops_soon", level=Event.Level.WARNING, until=until)
    elif what in (Act.STOP, Act.GIVE_UP):
        code = "stopped_by_schedule" if what == Act.STOP else "schedule_no_room"
        add_event(row, code, level=Event.Level.WARNING)
        audit.record(None, "workspace.stop-by-schedule", target=row, tenant=row.tenant)
        return runs.stop(row)
    return False


def _keep(schedule: Schedule, known: Known, *, is_over: bool) -> None:
    schedule.done_until, schedule.stops_at, schedule.waits_until = (
        known.done_until,
        known.stops_at,
        known.waits_until,
    )
    goes_on = schedule.is_on and not is_over
    schedule.due_at = weekly.look_at(week_of(schedule), known) if goes_on else None
    schedule.save(update_fields=["is_on", "done_until", "stops_at", "waits_until", "due_at"])
