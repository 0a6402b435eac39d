"""Notify people of an event: the one function that the rooms above call.

Rows are written in the caller's transaction, so that a notice exists exactly if the event happened. Everything slow
comes later, in the worker. A fault in here is logged, and never stops the caller's work.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts import enqueue
from accounts.live import publish
from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.preferences import mail_is_configured, ways_of

log = logging.getLogger(__name__)

# After a mail, others of the same kind to the same person wait so long, to be sent together.
GATHERED = timedelta(minutes=2)


def notify(
    kind: Kind,
    people: Collection[User],
    *,
    subject: str,
    subject_id: UUID,
    key: str,
    data: dict[str, Any],
    worth_a_mail: bool = True,
) -> None:
    """Notify each of these people, once per key, by the ways that they chose."""
    try:
        with transaction.atomic():
            _write(kind, people, worth_a_mail, subject=subject, subject_id=subject_id, key=key, data=data)
    except Exception:
        if transaction.get_connection().needs_rollback:
            raise  # the database is away, so the caller's work is lost too
        log.exception("nobody was told of %s: %s", subject, key)


def group_of(user_id: UUID) -> str:
    """Name of the group that sends notices to a person's open pages."""
    return f"notices.{user_id}"


def _write(kind: Kind, people: Collection[User], worth_a_mail: bool, **fields: Any) -> None:
    now = timezone.now()
    rows = []
    ways = ways_of(people, kind)
    worth_a_mail = worth_a_mail and mail_is_configured()
    just_mailed = set[UUID]()
    if worth_a_mail:
        mailed = Notice.objects.filter(user__in=people, kind=kind, at__gt=now - GATHERED)
        just_mailed.update(mailed.exclude(mail=Notice.Mail.NONE).values_list("user_id", flat=True))
    for person in people:
        in_berth, by_mail = ways[person.pk]
        by_mail = by_mail and worth_a_mail and bool(person.email)
        if person.is_active and (in_berth or by_mail):
            row = Notice(user=person, kind=kind, in_berth=in_berth, **fields)
            if by_mail:
                row.mail, row.mail_pass_at = Notice.Mail.WAITING, now
                row.mail_due_at = now + GATHERED if person.pk in just_mailed else now
            rows.append(row)
    Notice.objects.bulk_create(rows, ignore_conflicts=True)
    for row in rows:
        if row.in_berth:
            publish(group_of(row.user_id), {"type": "notices.changed"})
    if any(row.mail == Notice.Mail.WAITING for row in rows):
        enqueue.send_mail()
