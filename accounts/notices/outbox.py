"""Send the mail that is due: at least once, never in the way of anything else.

One sender works at a time, over one connection: a mail server that is slow or away blocks one worker at most, and is
tried with one person's mail, not with all that wait. Before an attempt, the rows' due time moves past the longest
attempt: if the worker dies, no mail is lost, and a notice that kills workers is tried ever more rarely. After a day
of attempts a mail is given up: it would be old news.

The first notice of a kind is sent at once; others for the same person within two minutes are sent in one mail.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any

from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import connection as database
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import enqueue
from accounts.access import Actor
from accounts.locks import for_change, forget, locked
from accounts.models import Scope
from accounts.notices import words
from accounts.notices.kinds import Kind
from accounts.notices.mail import compose
from accounts.notices.models import Notice
from accounts.notices.preferences import ways_of
from accounts.trail import audit
from vitals.clock import is_near_now

log = logging.getLogger(__name__)

GIVEN_UP_AFTER = timedelta(hours=24)
KEPT = timedelta(days=90)
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
LONGEST_TRY = timedelta(minutes=3)  # longer than the task's own limit
PASS_SECONDS = 45  # then the worker is free for other tasks
PASS_LOST_AFTER = timedelta(seconds=30)
MOST_TOGETHER = 50
LOCK = 0x6265727468  # advisory lock: one sender at a time
WAITING = Notice.Mail.WAITING
CAN_BE_SENT_AGAIN = (WAITING, Notice.Mail.GIVEN_UP)


class ServerFault(Exception):
    """The mail server is away or accepts nothing from us: the next notice would fail too."""


def pause_after(attempts: int) -> timedelta:
    """Pause before the next attempt: 1, 2, 4 … minutes, an hour at most."""
    factor: int = 2 ** min(attempts - 1, 10)
    return min(FIRST_PAUSE * factor, LONGEST_PAUSE)


def on_tick(**_: Any) -> None:
    """Enqueue a pass for due mail, unless one was enqueued just now; delete old notices."""
    now = timezone.now()
    forget(Notice.objects.filter(at__lt=now - KEPT))
    waiting = Notice.objects.filter(mail=WAITING)
    if waiting.filter(is_near_now("mail_pass_at", now, PASS_LOST_AFTER)).exists():
        return
    first = waiting.filter(mail_due_at__lte=now).order_by("mail_due_at").values("pk")[:1]
    with transaction.atomic():
        if Notice.objects.filter(pk__in=first).update(mail_pass_at=now):
            enqueue.send_mail()


def send_again(actor: Actor, notice: Notice) -> bool:
    """Send a waiting or given-up mail now, for an admin. Return False if it is neither any more."""
    actor.require(Scope.ADMIN)
    now = timezone.now()
    with transaction.atomic():
        unsent = Notice.objects.filter(pk=notice.pk, mail__in=CAN_BE_SENT_AGAIN)
        if not unsent.update(mail=WAITING, mail_due_at=now, mail_pass_at=now, mail_settled_at=None):
            return False
        enqueue.send_mail()
        audit.record(actor, "notice.send_again", target=notice, data={"username": notice.user.username})
    return True


def send_due() -> None:
    """Send due mail, oldest first, until the time of one pass is over or the server does not answer."""
    with _alone() as mine:
        # If another sender is at work, it or the next tick sends our mail too.
        is_done = not mine or _send_for(PASS_SECONDS)
    if not is_done:
        enqueue.send_mail()


def _send_for(seconds: float) -> bool:
    """Send due mail for so many seconds. Return False if there may be more."""
    until = monotonic() + seconds
    mailer = get_connection()
    try:
        while monotonic() < until:
            if not (batch := take()):
                return True
            deliver(batch, mailer)
    except ServerFault as fault:
        log.warning("mail cannot be sent now: %s", fault)
        return True  # a later tick tries again
    finally:
        _close(mailer)
    return False


def take() -> list[Notice]:
    """Take the next due notice, and waiting ones of its kind for the same person. The attempt counts from here."""
    now = timezone.now()
    with transaction.atomic():
        waiting = locked(Notice.objects.filter(mail=WAITING), skip_busy=True)
        due = waiting.select_related("user").filter(mail_due_at__lte=now)
        first = due.order_by("mail_due_at", "at").first()
        if first is None:
            return []
        # Never together with a retry: a refused address or text must not delay new notices.
        alike = waiting.filter(user=first.user, kind=first.kind, mail_attempts=0).exclude(pk=first.pk)
        batch = [first, *(alike.order_by("at")[: MOST_TOGETHER - 1] if first.mail_attempts == 0 else ())]
        attempts = first.mail_attempts + 1
        for notice in batch:
            notice.mail_attempts, notice.user = attempts, first.user
        _rows(batch).update(mail_attempts=attempts, mail_due_at=now + LONGEST_TRY + pause_after(attempts))
    return batch


def deliver(batch: Sequence[Notice], mailer: BaseEmailBackend) -> None:
    """Send the notices and record the outcome. Then raise ServerFault if other mail would fail too."""
    try:
        _send(batch, mailer)
    except smtplib.SMTPRecipientsRefused as refused:
        code, text = next(iter(refused.recipients.values()))
        _failed(batch, _reply(code, text), for_good=500 <= code < 600)
    except smtplib.SMTPDataError as refused:
        _failed(batch, _reply(refused.smtp_code, refused.smtp_error), for_good=500 <= refused.smtp_code < 600)
    except (smtplib.SMTPException, OSError) as error:
        _close(mailer)
        _failed(batch, str(error) or type(error).__name__)
        raise ServerFault(error) from error
    except Exception as error:
        log.exception("notice %s could not be made into a mail", batch[0].pk)
        _failed(batch, f"{type(error).__name__}: {error}")


def _send(batch: Sequence[Notice], mailer: BaseEmailBackend) -> None:
    """Send the notices that still hold, if the person has an address and wants mail; settle the others as needless."""
    user = batch[0].user
    wanted = user.email and ways_of([user], Kind(batch[0].kind))[user.pk].by_mail
    with words.read_by(user):
        found = words.of(user, batch) if wanted else {}
        told = [(notice, found[notice.pk]) for notice in batch if notice.pk in found]
        told = [(notice, said) for notice, said in told if not said.is_past]
        if told:
            mailer.open()  # stays open for the next mails
            compose(user, told, mailer).send()
    sent = [notice for notice, _said in told]
    _settle(sent, Notice.Mail.SENT)
    _settle([notice for notice in batch if notice not in sent], Notice.Mail.NEEDLESS)


def _rows(batch: Sequence[Notice]) -> QuerySet[Notice]:
    return Notice.objects.filter(pk__in=[notice.pk for notice in batch])


def _settle(batch: Sequence[Notice], state: Notice.Mail, error: str = "") -> None:
    with transaction.atomic():
        for_change(_rows(batch)).update(
            mail=state, mail_due_at=None, mail_error=error[:240], mail_settled_at=timezone.now()
        )


def _failed(batch: Sequence[Notice], error: str, *, for_good: bool = False) -> None:
    """Schedule another attempt, or give up: at once if the answer is final, else after a day."""
    now = timezone.now()
    old = [notice for notice in batch if for_good or now > notice.at + GIVEN_UP_AFTER]
    if old:
        log.error("mail about %s is given up: %s", ", ".join(str(notice.pk) for notice in old), error)
        _settle(old, Notice.Mail.GIVEN_UP, error)
    later = _rows([notice for notice in batch if notice not in old])
    # Only rows that still wait: the person may have turned mail off meanwhile.
    with transaction.atomic():
        for_change(later.filter(mail=WAITING)).update(
            mail_due_at=now + pause_after(batch[0].mail_attempts), mail_error=error[:240]
        )


def _reply(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"


def _close(mailer: BaseEmailBackend) -> None:
    try:
        mailer.close()
    except (smtplib.SMTPException, OSError):
        log.debug("the mail server did not say goodbye")


@contextmanager
def _alone() -> Iterator[bool]:
    """Yield True if this is the only sender. The lock belongs to the database session and ends with the process."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with database.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
