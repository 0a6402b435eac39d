"""Carry out a form once: a second press of its button, or a reload of the answer, gets the first outcome again.

A form carries a token. The same token with the same fields is the same request; with other fields it is a new one.
The request's row and its changes are one transaction, so that the second of two at once waits for the first.

Rows of forms and of the API's keys (`accounts/rest/idempotency.py`) are kept and limited alike. None is deleted before
its time, because a retry would then be done twice: a person who has too many rows is refused until the oldest end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import ceil

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Func, IntegerField, Q, Sum
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.credentials import secrets
from accounts.errors import Refusal, TooMany
from accounts.locks import forget
from accounts.models import IdempotentAnswer, User

KEPT = timedelta(hours=24)
# Limits of one person's kept answers. Requests that are under way at once can exceed them by their own number.
MOST_ANSWERS = 5_000
MOST_BYTES = 16 << 20
# Old rows deleted by one request, which must not pay for a table that nobody cleaned for days. With the person's own,
# they are as many as `forget` takes.
FORGOTTEN_AT_ONCE = 499
NOT_PART_OF_THE_WISH = "csrfmiddlewaretoken"

SIZE = Func(F("body"), function="octet_length", output_field=IntegerField())  # reads no body


def done_once(user: User, sent: QueryDict, work: Callable[[], str]) -> str:
    """Return the outcome of `work`, from now or from the first time. After a refusal it can be tried again.

    A form that came without its token is carried out each time.
    """
    if not sent.get("once"):
        return work()
    digest = _digest(sent)
    key = f"form:{digest}"
    forget_old(user, key)
    refusal: Refusal | None = None
    with transaction.atomic():
        try:
            with transaction.atomic():
                row = IdempotentAnswer.objects.create(user=user, key=key, request_digest=digest)
        except IntegrityError:
            return secrets.decrypt(IdempotentAnswer.objects.get(user=user, key=key).body)
        check_room(row)
        try:
            outcome = work()
            IdempotentAnswer.objects.filter(pk=row.pk).update(status=302, body=secrets.encrypt(outcome))
            return outcome
        except Refusal as error:  # keep what `work` wrote, such as the entry about the refusal
            row.delete()
            refusal = error
    raise refusal


def forget_old(user: User, key: str) -> None:
    """Delete the person's row of this key if its time is over, and some old rows of all people."""
    old = IdempotentAnswer.objects.filter(created_at__lt=timezone.now() - KEPT)
    some = old.order_by("created_at").values("pk")[:FORGOTTEN_AT_ONCE]
    forget(old.filter(Q(user=user, key=key) | Q(pk__in=some)))


def check_room(row: IdempotentAnswer) -> None:
    """Raise TooMany if the row's person already has as many answers, or bytes of them, as are kept."""
    now = timezone.now()
    others = IdempotentAnswer.objects.filter(user=row.user, created_at__gte=now - KEPT).exclude(pk=row.pk)
    used = others.aggregate(rows=Count("pk"), size=Sum(SIZE))
    if used["rows"] < MOST_ANSWERS and (used["size"] or 0) < MOST_BYTES:
        return
    free_at = _free_at(others.order_by("created_at").values_list("created_at", SIZE))
    raise TooMany(
        "too_many_answers",
        _("Berth keeps at most %(rows)d answers, or %(mebibytes)d MiB of them, per person for 24 hours.")
        % {"rows": MOST_ANSWERS, "mebibytes": MOST_BYTES >> 20},
        _("Wait for the time in Retry-After, or send requests without an Idempotency-Key."),
        retry_after_seconds=max(1, ceil((free_at - now).total_seconds())),
    )


def _free_at(oldest_first: Iterable[tuple[datetime, int]]) -> datetime:
    """Return the time at which enough answers have ended that one more can be kept."""
    answers = list(oldest_first)
    rows, size = len(answers), sum(length for _at, length in answers)
    for at, length in answers:
        rows, size = rows - 1, size - length
        if rows < MOST_ANSWERS and size < MOST_BYTES:
            return at + KEPT
    return answers[-1][0] + KEPT


def _digest(sent: QueryDict) -> str:
    fields = sorted((name, values) for name, values in sent.lists() if name != NOT_PART_OF_THE_WISH)
    return hashlib.sha256(repr(fields).encode()).hexdigest()
