"""Send the messages of alerts that are due. Any number of workers may do so at once.

A message is taken under its own lock, which belongs to the database session and ends with the process that holds it. A
worker that dies before it sent the message has sent nothing, and another one takes it after a few seconds. One that
dies between the receiver's answer and the row that notes it is the one case in which a message goes out twice; it then
has the same id (`webhook-id`, `Message-ID`), by which a receiver can drop it.

A route gets one message in twenty seconds: what becomes due meanwhile goes together. A receiver that is away is tried
again, after 10 seconds at first and an hour at most, and given up after a day.
"""

from __future__ import annotations

import logging
import smtplib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_network
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.core.mail import get_connection
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone, translation

from accounts.access import Actor
from accounts.credentials.secrets import Unreadable, decrypt
from accounts.live import publish
from accounts.locks import alone, locked, one_at_a_time
from accounts.models import Scope
from accounts.notices import words as readers
from accounts.trail import audit
from clusters.isolation.networks import known
from clusters.models import Cluster
from monitoring.alerts import messages, passes, posting, ways
from monitoring.alerts.deliveries import SENDABLE
from monitoring.alerts.raising import LIVE
from monitoring.alerts.routes import is_of_member
from monitoring.models import Alert, AlertDelivery, AlertRoute
from quotas.namespaces.manifests import METADATA

log = logging.getLogger(__name__)

APART = timedelta(seconds=20)
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
GIVEN_UP_AFTER = timedelta(hours=24)
MOST_TOGETHER = 50
PASS_SECONDS = 40.0  # then the worker is free for other tasks
# Receivers that hang must not take all workers.
SENDERS = (UUID(int=0x6265727468_A1), UUID(int=0x6265727468_A2))
State = AlertDelivery.State
Occasion = AlertDelivery.Occasion
BY_MAIL = (AlertRoute.Way.ADMINS, AlertRoute.Way.MAIL)


class Refused(Exception):
    """The message did not arrive. `status`: the answer, if there was one. `is_final`: it is not tried again."""

    def __init__(self, text: str, status: int | None = None, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.status, self.is_final = status, is_final


def pause_after(attempts: int) -> timedelta:
    """Pause before the next attempt: 10, 20, 40 … seconds, an hour at most."""
    factor: int = 2 ** min(max(attempts - 1, 0), 12)
    return min(FIRST_PAUSE * factor, LONGEST_PAUSE)


def send_due() -> None:
    """Send what is due, until the time of one pass is over."""
    passes.sending_begins()
    with _slot() as mine:
        until = monotonic() + PASS_SECONDS
        while mine and monotonic() < until:
            if (batch := take()) is None:
                return
            deliver(batch)
    if mine:
        passes.want_sending()


def send_again(actor: Actor, delivery: AlertDelivery) -> bool:
    """Send a waiting or given-up message now, for an admin. Return False if it is neither any more."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        unsent = AlertDelivery.objects.filter(pk=delivery.pk).exclude(state=State.SENT)
        if not unsent.update(state=State.WAITING, due_at=timezone.now(), created_at=timezone.now()):
            return False
        audit.record(actor, "alert_route.send_again", target=delivery.route, tenant=delivery.route.tenant)
    passes.want_sending()
    return True


@contextmanager
def _slot() -> Iterator[bool]:
    """Yield True if not too many send already."""
    with alone(SENDERS[0]) as first:
        if first:
            yield True
            return
        with alone(SENDERS[1]) as second:
            yield second


def take() -> UUID | None:
    """Take the next due message: its deliveries get one batch, and count as tried from here. None: nothing is due.

    One process at a time takes: two that choose at once could each take a part of what goes to a route together.
    """
    with transaction.atomic():
        one_at_a_time("alerts: take a message")
        now = timezone.now()
        waiting = AlertDelivery.objects.filter(SENDABLE)
        _postpone_silenced(waiting.filter(due_at__lte=now))
        first = locked(_may_go(waiting.filter(due_at__lte=now)), skip_busy=True)
        # Routes of no tenant first: slow receivers of owners must not delay what admins are told.
        first = first.annotate(is_of_admins=Q(route__tenant=None))
        chosen = first.order_by("-is_of_admins", "due_at", "pk").first()
        if chosen is None:
            return None
        batch = chosen.batch or uuid.uuid4()
        if chosen.batch:
            rows = waiting.filter(batch=batch)
        else:
            alike = _may_go(waiting.filter(route=chosen.route_id, recipient=chosen.recipient_id, batch=None))
            alike = alike.filter(due_at__lte=now, alert__isnull=chosen.alert_id is None)
            picked = locked(alike, skip_busy=True).order_by("due_at", "pk").values_list("pk", flat=True)
            rows = waiting.filter(pk__in=[chosen.pk, *picked[:MOST_TOGETHER]])
        rows.update(batch=batch, attempts=F("attempts") + 1, due_at=now + pause_after(chosen.attempts + 1))
    return batch


def _postpone_silenced(due: QuerySet[AlertDelivery]) -> None:
    """Let messages about silenced alerts wait until the silence ends."""
    silenced = due.filter(alert__state=Alert.State.SILENCED, alert__silenced_until__isnull=False)
    for pk, until in silenced.values_list("pk", "alert__silenced_until"):
        AlertDelivery.objects.filter(pk=pk, state=State.WAITING).update(due_at=until)


def _may_go(rows: QuerySet[AlertDelivery]) -> QuerySet[AlertDelivery]:
    """Leave out what would come too soon after the last message, or before the message that it follows."""
    same = AlertDelivery.objects.filter(route=OuterRef("route"))
    same = same.filter(Q(recipient=OuterRef("recipient")) | Q(recipient=None))
    now = timezone.now()
    goes_now = Q(state=State.WAITING, attempts=1, batch__isnull=False, due_at__gt=now)
    just_sent = same.filter(goes_now | Q(state=State.SENT, sent_at__gt=now - APART))
    before = same.filter(
        alert=OuterRef("alert"), state=State.WAITING, occasion__in=(Occasion.FIRING, Occasion.ESCALATED)
    )
    return rows.exclude(Exists(just_sent), batch=None, alert__isnull=False).exclude(
        Exists(before), occasion=Occasion.RESOLVED
    )


def deliver(batch: UUID) -> None:
    """Send one message and note the outcome, unless another process is at it, or was."""
    with alone(batch) as mine:
        if not mine:
            return
        rows = list(
            AlertDelivery.objects.filter(batch=batch, state=State.WAITING)
            .select_related("route", "recipient", "alert__cluster", "alert__tenant")
            .select_related("alert__acknowledged_by", "alert__resolved_by")
            .order_by("created_at", "pk")
        )
        if not rows:
            return
        try:
            status = send(rows, batch)
        except Refused as refused:
            _failed(rows, str(refused), refused.status, is_final=refused.is_final)
        except Exception as error:
            log.exception("message %s about alerts could not be made", batch)
            _failed(rows, type(error).__name__, None)
        else:
            _note(rows, state=State.SENT, sent_at=timezone.now(), due_at=None, status_code=status, error="")


def send(rows: Sequence[AlertDelivery], batch: UUID) -> int | None:
    """Send the message. Return the receiver's status, if it has one. Raise Refused."""
    route = rows[0].route
    if route.way in BY_MAIL:
        _mail(rows, batch)
        return None
    with translation.override(settings.LANGUAGE_CODE):
        message = messages.compose(rows, batch)
    try:
        request = ways.request_for(route.way, decrypt(route.address), _opened(route.secret), message)
        answer = posting.post(request, refused=refused_networks(route))
    except Unreadable as error:
        raise Refused(str(error)) from None
    except posting.NotPosted as error:
        raise Refused(str(error)) from None
    if why := ways.refused(route.way, answer):
        raise Refused(why, answer.status)
    return answer.status


def _opened(secret: str) -> str:
    return decrypt(secret) if secret else ""


def _mail(rows: Sequence[AlertDelivery], batch: UUID) -> None:
    route, person = rows[0].route, rows[0].recipient
    if person is not None:
        if not (person.is_staff and person.is_active):
            raise Refused("The recipient is no admin any more.", is_final=True)
        with readers.read_by(person):
            message, to = messages.compose(rows, batch), person.email
            _send_mail(message, to)
        return
    to = decrypt(route.address)
    if route.tenant_id is not None and not is_of_member(route.tenant_id, to):
        raise Refused("The mail address is not one of a member of the tenant any more.", is_final=True)
    with translation.override(settings.LANGUAGE_CODE):
        _send_mail(messages.compose(rows, batch), to)


def _send_mail(message: ways.Message, to: str) -> None:
    connection = get_connection()
    try:
        messages.mail(message, to, connection).send()
    except smtplib.SMTPResponseException as error:
        raise Refused(f"{error.smtp_code} {_text(error.smtp_error)}", error.smtp_code) from None
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()))
        raise Refused(f"{code} {_text(text)}", code) from None
    except (smtplib.SMTPException, OSError) as error:
        raise Refused(str(error) or type(error).__name__) from None


def _text(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def refused_networks(route: AlertRoute) -> list[posting.Network] | None:
    """Return the networks that a tenant's route must not reach; None for an admin's route, which may reach all."""
    if route.tenant_id is None or route.may_reach_inside:
        return None
    of_clusters = (
        cidr
        for networks in map(known, Cluster.objects.all())
        for cidr in (*networks.pods, *networks.services, *networks.api, *networks.nodes)
    )
    return [ip_network(cidr, strict=False) for cidr in (*METADATA, *of_clusters)]


def _note(rows: Iterable[AlertDelivery], **values: object) -> None:
    with transaction.atomic():
        AlertDelivery.objects.filter(pk__in=[row.pk for row in rows]).update(**values)
        publish(LIVE, {"type": "alerts.changed"})


def _failed(rows: Sequence[AlertDelivery], error: str, status: int | None, *, is_final: bool = False) -> None:
    now = timezone.now()
    told = {"error": error[:240], "status_code": status}
    old = [row for row in rows if is_final or now > row.created_at + GIVEN_UP_AFTER]
    if old:
        log.error("a message about alerts by the route %s is given up: %s", old[0].route_id, error)
        _note(old, state=State.GIVEN_UP, due_at=None, **told)
    later = [row for row in rows if row not in old]
    if later:
        _note(later, due_at=now + pause_after(rows[0].attempts), **told)
