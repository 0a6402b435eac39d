"""A person's notices: the list, the unread ones, and those that the browser should show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.access import not_there
from accounts.live import publish
from accounts.locks import for_change
from accounts.models import User
from accounts.notices import words
from accounts.notices.models import Notice
from accounts.notices.notifying import group_of

PAGE = 30
# Notices up to this age are still shown as notifications by a browser that opens late.
FRESH = timedelta(minutes=15)
MOST_AT_ONCE = 5

Line = tuple[Notice, words.Words]


def listed(user: User) -> QuerySet[Notice]:
    return Notice.objects.filter(user=user, in_berth=True)


def unread(user: User) -> int:
    return listed(user).filter(read_at__isnull=True).count()


def page(user: User, before: tuple[datetime, UUID] | None = None) -> tuple[list[Line], Notice | None]:
    """Newest notices, or those older than `before`, in the current language; and the last one if more follow."""
    rows = listed(user)
    if before is not None:
        at, last = before
        rows = rows.filter(Q(at__lt=at) | Q(at=at, id__lt=last))
    found = list(rows[: PAGE + 1])
    return with_words(user, found[:PAGE]), found[PAGE - 1] if len(found) > PAGE else None


def fresh(user: User) -> list[Line]:
    """Unread notices of the last minutes that still hold, oldest first, for an open page to show."""
    rows = listed(user).filter(read_at__isnull=True, at__gt=timezone.now() - FRESH)
    lines = with_words(user, list(rows[:MOST_AT_ONCE]))
    return [(notice, found) for notice, found in reversed(lines) if not found.is_past]


def open_one(user: User, notice_id: UUID) -> str:
    """Count the notice as read, and return the path of its subject's page. Raise NotThere if there is none."""
    notice = listed(user).filter(pk=notice_id).first()
    found = words.of(user, [notice]).get(notice.pk) if notice else None
    if notice is None or found is None:
        raise not_there()
    if notice.read_at is None:
        _read(listed(user).filter(pk=notice.pk), user)
    return found.path


def read_about(user: User, subject_id: UUID) -> None:
    """Count notices about a subject as read, because the person looks at its page."""
    about = listed(user).filter(subject_id=subject_id, read_at__isnull=True)
    if about.exists():
        _read(about, user)


def read_all(user: User) -> None:
    _read(listed(user).filter(read_at__isnull=True), user)


def _read(rows: QuerySet[Notice], user: User) -> None:
    with transaction.atomic():
        for_change(rows).update(read_at=timezone.now())
        publish(group_of(user.pk), {"type": "notices.changed"})


def with_words(user: User, notices: Sequence[Notice]) -> list[Line]:
    found = words.of(user, notices)
    return [(notice, found[notice.pk]) for notice in notices if notice.pk in found]
