"""Announcements of this moment, and whether maintenance holds back what is new."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.announcements.models import Announcement
from accounts.errors import Conflict
from accounts.models import User

MOST_SHOWN = 5


def shown(now: datetime | None = None) -> QuerySet[Announcement]:
    """Announcements of this moment, the most severe first."""
    now = now or timezone.now()
    levels = [When(level=level, then=Value(-place)) for place, level in enumerate(Announcement.Level)]
    rank = Case(*levels, output_field=IntegerField())
    rows = Announcement.objects.filter(Q(shown_until=None) | Q(shown_until__gt=now), shown_from__lte=now)
    return rows.order_by(rank, "-shown_from", "pk")


def maintenance(now: datetime | None = None) -> Announcement | None:
    """Return the announcement by which nothing new starts now; the one that ends last, if there are several."""
    now = now or timezone.now()
    found = list(shown(now).filter(no_launches_from__lte=now))
    return max(found, key=lambda one: (one.shown_until is None, one.shown_until), default=None)


def refuse_in_maintenance(actor: Actor) -> None:
    """Raise a Conflict if nothing new may be launched now. Admins may: they try whether it works again."""
    if actor.user.is_staff or (found := maintenance()) is None:
        return
    if found.shown_until:
        hint = _("Launches are open again at %(time)s. Running workspaces and jobs are not affected.")
        hint %= {"time": moment(found.shown_until)}
    else:
        hint = _("Try again later. Running workspaces and jobs are not affected.")
    text = _("Nothing new can be launched during maintenance: %(text)s") % {"text": found.text}
    raise Conflict("maintenance", text, hint)


def held_back(claims: Iterable[tuple[UUID, UUID]]) -> set[UUID]:
    """Return which of these (claim, person) wait for the end of maintenance. Those of admins do not."""
    if maintenance() is None:
        return set()
    pairs = list(claims)
    staff = User.objects.filter(pk__in={user for _claim, user in pairs}, is_staff=True)
    admins = set(staff.values_list("pk", flat=True))
    return {claim for claim, user in pairs if user not in admins}


def moment(at: datetime) -> str:
    """Return the time in the reader's zone and form."""
    return date_format(timezone.localtime(at), "DATETIME_FORMAT")


def about_launches(announcement: Announcement) -> str:
    """Return the sentence on its maintenance; empty if it has none."""
    if announcement.no_launches_from is None:
        return ""
    facts = {"from": moment(announcement.no_launches_from)}
    if announcement.shown_until is None:
        return _("Nothing new can be launched from %(from)s. What runs is not affected.") % facts
    facts["until"] = moment(announcement.shown_until)
    return _("Nothing new can be launched from %(from)s until %(until)s. What runs is not affected.") % facts
