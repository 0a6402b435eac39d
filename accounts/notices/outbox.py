"""Send the mail that is due: at least once, never in the way of anything else.

One sender at a time, over one connection: a mail server that is slow or away holds up one worker at most, and is asked
by one notice, not by all that wait. A row is taken before it is tried, by moving its time past the longest try: a
worker that dies with it loses nothing, and a notice that kills workers comes ever more rarely. Tried for a day, then
given up: who reads it then would be told old news.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import connection as database
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts import audit, tasks
from accounts.access import Actor
from accounts.models import Scope
from accounts.notices import words
from accounts.notices.kinds import Kind
from accounts.notices.mail import compose
from accounts.notices.models import Notice
from accounts.notices.preferences import ways_of

log = logging.getLogger(__name__)

GIVEN_UP_AFTER = timedelta(hours=24)
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
LONGEST_TRY = timedelta(minutes=3)  # longer than the task's own limit
PASS_SECONDS = 45  # then the worker is free for others in between
PASS_LOST_AFTER = timedelta(seconds=30)
LOCK = 0x6265727468  # of the database: one sender at a time
WAITING = Notice.Mail.WAITING
CAN_BE_SENT_AGAIN = (WAITING, Notice.Mail.GIVEN_UP)


class ServerFault(Exception):
    """The mail server is away, or takes nothing from us: no use to try the next notice now."""


def pause_after(attempts: int) -> timedelta:
    """1, 2, 4 … minutes, an hour at most."""
    factor: int = 2 ** min(attempts - 1, 10)
    return min(FIRST_PAUSE * factor, LONGEST_PAUSE)


def on_tick(**_: Any) -> None:
    """Have somebody look at what is due and has no pass under way."""
    now = timezone.now()
    lost = Q(mail_pass_at__isnull=True) | Q(mail_pass_at__lt=now - PASS_LOST_AFTER)
    with transaction.atomic():
        due = Notice.objects.filter(lost, mail=WAITING, mail_due_at__lte=now)
        if due.update(mail_pass_at=now):
            tasks.enqueue_mail()


def send_again(actor: Actor, notice: Notice) -> bool:
    """By an admin's wish: what was given up, or waits for its next attempt, now. False: it is neither any more."""
    actor.require(Scope.ADMIN)
    now = timezone.now()
    with transaction.atomic():
        unsent = Notice.objects.filter(pk=notice.pk, mail__in=CAN_BE_SENT_AGAIN)
        if not unsent.update(mail=WAITING, mail_due_at=now, mail_pass_at=now, mail_settled_at=None):
            return False
        tasks.enqueue_mail()
        audit.record(actor, "notice.send_again", target=notice, data={"username": notice.user.username})
    return True


def send_due() -> None:
    """All that is due, oldest first, until the time of one pass is over or the server does not answer."""
    until = monotonic() + PASS_SECONDS
    with _alone() as mine:
        if not mine:
            return  # whoever is at it takes ours along, or the next tick does
        mailer = get_connection()
        try:
            while (notice := take()) is not None:
                deliver(notice, mailer)
                if monotonic() > until:
                    tasks.enqueue_mail()
                    break
        except ServerFault as fault:
            log.warning("mail cannot be sent now: %s", fault)
        finally:
            _close(mailer)


def take() -> Notice | None:
    """The next one that is due, its attempt counted before it is made."""
    now = timezone.now()
    with transaction.atomic():
        due = Notice.objects.select_for_update(of=("self",), skip_locked=True).select_related("user")
        notice = due.filter(mail=WAITING, mail_due_at__lte=now).order_by("mail_due_at").first()
        if notice is not None:
            notice.mail_attempts += 1
            notice.mail_due_at = now + LONGEST_TRY + pause_after(notice.mail_attempts)
            notice.save(update_fields=["mail_attempts", "mail_due_at"])
    return notice


def deliver(notice: Notice, mailer: BaseEmailBackend) -> None:
    """Send it and write down what became of it. Raises ServerFault after writing, where others would fare no better."""
    try:
        sent = _send(notice, mailer)
    except smtplib.SMTPRecipientsRefused as refused:
        code, text = next(iter(refused.recipients.values()))
        _failed(notice, _reply(code, text), for_good=500 <= code < 600)
    except smtplib.SMTPDataError as refused:
        _failed(
            notice, _reply(refused.smtp_code, refused.smtp_error), for_good=500 <= refused.smtp_code < 600
        )
    except (smtplib.SMTPException, OSError) as error:
        _close(mailer)
        _failed(notice, str(error) or type(error).__name__)
        raise ServerFault(error) from error
    except Exception as error:
        log.exception("notice %s could not be made into a mail", notice.pk)
        _failed(notice, f"{type(error).__name__}: {error}")
    else:
        _settle(notice, Notice.Mail.SENT if sent else Notice.Mail.NEEDLESS)


def _send(notice: Notice, mailer: BaseEmailBackend) -> bool:
    """Whether there was still something to tell, somewhere to send it, and the wish to get it."""
    user = notice.user
    if not user.email or not ways_of([user], Kind(notice.kind))[user.pk].by_mail:
        return False
    with words.read_by(user):
        found = words.of(user, [notice]).get(notice.pk)
        if found is None or found.is_past:
            return False
        mailer.open()  # where it is not yet; it stays so for the next notice
        compose(user, notice, found, mailer).send()
    return True


def _settle(notice: Notice, state: Notice.Mail, error: str = "") -> None:
    Notice.objects.filter(pk=notice.pk).update(
        mail=state, mail_due_at=None, mail_error=error[:240], mail_settled_at=timezone.now()
    )


def _failed(notice: Notice, error: str, *, for_good: bool = False) -> None:
    now = timezone.now()
    next_at = now + pause_after(notice.mail_attempts)
    if for_good or now > notice.at + GIVEN_UP_AFTER:
        log.error("the mail of notice %s is given up: %s", notice.pk, error)
        _settle(notice, Notice.Mail.GIVEN_UP, error)
    else:
        _wait_until(notice, next_at, error)


def _wait_until(notice: Notice, next_at: datetime, error: str) -> None:
    waiting = Notice.objects.filter(pk=notice.pk, mail=WAITING)  # not turned off meanwhile
    waiting.update(mail_due_at=next_at, mail_error=error[:240])


def _reply(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"


def _close(mailer: BaseEmailBackend) -> None:
    try:
        mailer.close()
    except (smtplib.SMTPException, OSError):
        log.debug("the mail server did not say goodbye")


@contextmanager
def _alone() -> Iterator[bool]:
    """A lock of the database session, gone when the process dies."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with database.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
