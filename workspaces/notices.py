"""Notices for the owner of a workspace: the events that cause one, and its words.

A notice keeps the number of its event. Its words are those of the event, made anew for each reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from quotas import reclaim
from quotas.reclaim import Asked

from . import access
from .models import Event, Phase, Schedule, ShareRole, Workspace
from .state import story

SUBJECT = "workspace"
SUBJECT_OF_SHARES = "share"
# After a shorter wait, people still have the page open, and it shows that the workspace is ready.
READY_IS_WORTH_A_MAIL_AFTER = timedelta(minutes=10)
# Events after which a person has what they asked for, or knows that they do not get it.
ENDS_OF_A_WAIT = ("ready", "stopped", "given_up", "refused_again")


class NoticeRule(NamedTuple):
    kind: Kind
    title: Promise


UNWELL = gettext_lazy("“%(name)s”: a problem with its GPU, node or storage")
SLOW_START = gettext_lazy("“%(name)s” starts with a problem")
GIVES_BACK = gettext_lazy("“%(name)s” has to return its GPUs soon")
ASKED_BACK = ("asked_back_owner_waits", "asked_back_booking_begins")
ENDS_BY_BUDGET = "ends_by_budget"
# Events whose time of the end is on the claim, and in the event.
ENDS_OF_CLAIMS = (*ASKED_BACK, ENDS_BY_BUDGET)
# Events whose time of the end is in the event.
ANNOUNCED = ("idle_stops_soon", "schedule_stops_soon")
NOTICE_RULES: dict[str, NoticeRule] = {
    "ready": NoticeRule(Kind.READY, gettext_lazy("“%(name)s” is ready")),
    "given_up": NoticeRule(Kind.FAILED, gettext_lazy("“%(name)s” failed")),
    "refused_again": NoticeRule(Kind.FAILED, gettext_lazy("“%(name)s” cannot start again")),
    "stop_requested": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was stopped by %(by)s")),
    "delete_requested": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was deleted by %(by)s")),
    "given_back": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” returns its GPUs")),
    "stopped_by_budget_spent": NoticeRule(
        Kind.STOPPED, gettext_lazy("“%(name)s” stopped: its GPU-hours are used up")
    ),
    ENDS_BY_BUDGET: NoticeRule(
        Kind.STOPS_SOON, gettext_lazy("“%(name)s” stops soon: its GPU-hours are used up")
    ),
    "goes_on_by_budget": NoticeRule(
        Kind.STOPS_SOON, gettext_lazy("“%(name)s” continues: GPU-hours are available again")
    ),
    **dict.fromkeys(ASKED_BACK, NoticeRule(Kind.STOPS_SOON, GIVES_BACK)),
    "spared": NoticeRule(
        Kind.STOPS_SOON, gettext_lazy("“%(name)s” continues: its GPUs are not needed elsewhere")
    ),
    "node_drains": NoticeRule(
        Kind.STOPS_SOON, gettext_lazy("“%(name)s” stops soon: its node needs maintenance")
    ),
    "stopped_by_drain": NoticeRule(
        Kind.STOPPED, gettext_lazy("“%(name)s” was stopped: its node needs maintenance")
    ),
    "interrupted": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was interrupted")),
    "container_restarted": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was interrupted")),
    "stopped_by_lifetime": NoticeRule(
        Kind.STOPPED, gettext_lazy("“%(name)s” stopped at the end of its lifetime")
    ),
    "idle_stops_soon": NoticeRule(Kind.STOPS_SOON, gettext_lazy("“%(name)s” is idle and stops soon")),
    "stopped_by_idleness": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was stopped: it was idle")),
    "schedule_stops_soon": NoticeRule(Kind.STOPS_SOON, gettext_lazy("“%(name)s” stops soon by its schedule")),
    "stopped_by_schedule": NoticeRule(Kind.STOPPED, gettext_lazy("“%(name)s” was stopped by its schedule")),
    "schedule_no_room": NoticeRule(Kind.FAILED, gettext_lazy("“%(name)s” was not started: no room")),
    "schedule_refused": NoticeRule(Kind.FAILED, gettext_lazy("“%(name)s” was not started by its schedule")),
    "stops_soon": NoticeRule(Kind.STOPS_SOON, gettext_lazy("“%(name)s” stops soon")),
}


def on_event(event: Event) -> None:
    """Notify the owner of a new event in the same transaction, if the event has a notice."""
    workspace, rule = event.workspace, NOTICE_RULES.get(event.code)
    if rule is None or not workspace.notify:
        return
    if event.data.get("by") == workspace.owner.get_username():
        return  # they did it themselves
    worth_a_mail = event.code != "ready" or waited(event) >= READY_IS_WORTH_A_MAIL_AFTER
    _notify_owner(event, rule.kind, _about(event), worth_a_mail=worth_a_mail)


def notify_condition(event: Event) -> None:
    """Notify the owner of a problem of node, GPU or storage: once for as long as it lasts."""
    if event.workspace.notify and event.code not in NOTICE_RULES:
        _notify_owner(event, Kind.HEALTH, {"code": event.code, "data": event.data})


def notify_start_problem(event: Event) -> None:
    """Notify the owner that something is in the way of the start. Not by mail: it may pass, or the start fails."""
    if event.workspace.notify:
        data = {"code": event.code, "data": event.data, "in_start": True}
        _notify_owner(event, Kind.FAILED, data, worth_a_mail=False)


def _notify_owner(event: Event, kind: Kind, data: dict[str, Any], **options: bool) -> None:
    workspace = event.workspace
    key = f"{SUBJECT} {workspace.pk} {event.number}"
    notify(kind, [workspace.owner], subject=SUBJECT, subject_id=workspace.pk, key=key, data=data, **options)


def _about(event: Event) -> dict[str, Any]:
    """Data for the words. A failure gets its cause, because the event itself only says that the start failed."""
    about: dict[str, Any] = {"code": event.code, "data": event.data}
    if NOTICE_RULES[event.code].kind == Kind.FAILED and not event.code.startswith("schedule_"):
        about["cause"] = event.workspace.failure
    if event.code == "stops_soon" and event.workspace.stops_at is not None:
        about["stops_at"] = event.workspace.stops_at.isoformat()
    if event.code in ENDS_OF_CLAIMS:
        about["stops_at"] = event.data["at"]
    if event.code in ANNOUNCED:
        about["stops_at"] = event.data["until"]
    return about


def waited(event: Event) -> timedelta:
    """Time that the owner has waited for this event: since the last event that ended a wait."""
    earlier = Event.objects.filter(workspace=event.workspace, number__lt=event.number)
    ended = earlier.filter(code__in=ENDS_OF_A_WAIT).order_by("-number").values("number")[:1]
    asked = earlier.filter(number__gt=Coalesce(Subquery(ended), 0)).order_by("number")
    asked_at = asked.values_list("at", flat=True).first()
    return event.at - (asked_at or event.at)


# --- Words


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Words by notice, for workspaces that the person may still see."""
    ids = {notice.subject_id for notice in notices}
    seen = access.visible(Actor(user)).filter(owner=user, pk__in=ids).select_related("tenant")
    workspaces = {workspace.pk: workspace for workspace in seen}
    asked = reclaim.asked(workspace.run for workspace in workspaces.values())
    return {
        notice.pk: _words(notice, workspaces[notice.subject_id], asked)
        for notice in notices
        if notice.subject_id in workspaces
        and (notice.data["code"] in NOTICE_RULES or notice.kind == Kind.HEALTH or _is_of_start(notice))
    }


def describe_shares(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Words by notice, for a colleague, about workspaces that they may still see."""
    seen = access.visible(Actor(user)).filter(pk__in={notice.subject_id for notice in notices})
    workspaces = {row.pk: row for row in seen.prefetch_related("shares")}
    return {
        notice.pk: _words_of_share(notice, workspaces[notice.subject_id], user)
        for notice in notices
        if notice.subject_id in workspaces
    }


def _words_of_share(notice: Notice, workspace: Workspace, user: User) -> Words:
    data = notice.data
    if is_end := data["code"] == "unshare":
        title, text = _("“%(name)s” is no longer shared with you"), _("%(by)s ended the sharing.")
    elif data["role"] == ShareRole.WORK:
        title = _("%(by)s shares “%(name)s” with you")
        text = _("You can work in it: JupyterLab, terminal, files, apps and SSH with your own keys.")
    else:
        title = _("%(by)s shares “%(name)s” with you")
        text = _("You can see its page, logs and metrics, and open the apps that are shared with the tenant.")
    share = access.share_of(Actor(user), workspace)
    return Words(
        title=title % data,
        text=text % data,
        path=reverse("workspace", args=[workspace.pk]),
        action=_("Open its page"),
        is_past=not is_end and (share is None or share.role != data["role"]),
    )


def _is_of_start(notice: Notice) -> bool:
    return bool(notice.data.get("in_start"))


def _title(notice: Notice) -> Promise:
    if _is_of_start(notice):
        return SLOW_START
    return UNWELL if notice.kind == Kind.HEALTH else NOTICE_RULES[notice.data["code"]].title


def _words(notice: Notice, workspace: Workspace, asked: Mapping[UUID | None, Asked]) -> Words:
    data = notice.data["data"]
    cause = notice.data.get("cause") or notice.data
    return Words(
        title=str(_title(notice)) % {**data, "name": workspace.name},
        text=_text(notice, workspace) or story.sentence(cause["code"], cause["data"]),
        hint=story.hint(cause["code"], cause["data"]),
        path=reverse("workspace", args=[workspace.pk]),
        action=_("Open its page"),
        is_past=_is_past(notice, workspace, asked.get(workspace.run)),
    )


def _text(notice: Notice, workspace: Workspace) -> str:
    """Text for a notice if the event's own sentence says too little outside the workspace's page; else empty."""
    if notice.kind == Kind.READY:
        return _("Your workspace in %(tenant)s runs: Jupyter and SSH answer.") % {
            "tenant": workspace.tenant.name
        }
    if (stops_at := _stops_at(notice)) is None:
        return ""
    if notice.data["code"] in ASKED_BACK:
        text = _("Its GPUs are borrowed. Their owner, or a booking, needs them: it stops at %(time)s.")
    elif notice.data["code"] == ENDS_BY_BUDGET:
        text = _("Its GPU-hours of this month are used up: it stops at %(time)s. Files are kept.")
    elif notice.data["code"] in ANNOUNCED:
        return ""  # the event says it all
    else:
        text = _("Its lifetime ends at %(time)s: it stops then. Files are kept.")
    return text % {"time": date_format(timezone.localtime(stops_at), "H:i T")}


def _stops_at(notice: Notice) -> datetime | None:
    return datetime.fromisoformat(notice.data["stops_at"]) if "stops_at" in notice.data else None


def _is_past(notice: Notice, workspace: Workspace, asked: Asked | None) -> bool:
    """Return True if the notice is out of date: not ready any more, already stopped, given more time, or repaired."""
    if notice.kind == Kind.READY:
        return workspace.phase != Phase.READY
    if _is_of_start(notice):
        return workspace.phase != Phase.STARTING or workspace.message_code != notice.data["code"]
    if notice.kind == Kind.HEALTH or notice.data["code"] == "node_drains":
        return all(one["code"] != notice.data["code"] for one in workspace.conditions)
    stops_at = _stops_at(notice)
    if stops_at is None:
        return False
    is_back = notice.data["code"] in ENDS_OF_CLAIMS
    own = workspace.idle_stops_at if notice.data["code"] == "idle_stops_soon" else workspace.stops_at
    if notice.data["code"] == "schedule_stops_soon":
        own = Schedule.objects.filter(workspace=workspace).values_list("stops_at", flat=True).first()
    stops_now = (asked and asked.at) if is_back else own
    return stops_now != stops_at or timezone.now() > stops_at
