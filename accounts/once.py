"""Carry out a form once: a second press of its button, or a reload of the answer, gets the first outcome again.

A form carries a token. The same token with the same fields is the same request; with other fields it is a new one.
The request's row and its changes are one transaction, so that the second of two at once waits for the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import QueryDict
from django.utils import timezone

from accounts.credentials import secrets
from accounts.errors import Refusal
from accounts.locks import forget
from accounts.models import IdempotentAnswer, User

KEPT = timedelta(hours=24)
NOT_PART_OF_THE_WISH = "csrfmiddlewaretoken"


def done_once(user: User, sent: QueryDict, work: Callable[[], str]) -> str:
    """Return the outcome of `work`, from now or from the first time. After a refusal it can be tried again."""
    forget(IdempotentAnswer.objects.filter(created_at__lt=timezone.now() - KEPT))
    digest = _digest(sent)
    key = f"form:{digest}"
    refusal: Refusal | None = None
    with transaction.atomic():
        try:
            with transaction.atomic():
                row = IdempotentAnswer.objects.create(user=user, key=key, request_digest=digest)
        except IntegrityError:
            return secrets.decrypt(IdempotentAnswer.objects.get(user=user, key=key).body)
        try:
            outcome = work()
            IdempotentAnswer.objects.filter(pk=row.pk).update(status=302, body=secrets.encrypt(outcome))
            return outcome
        except Refusal as error:  # keep what `work` wrote, such as the entry about the refusal
            row.delete()
            refusal = error
    raise refusal


def _digest(sent: QueryDict) -> str:
    fields = sorted((name, values) for name, values in sent.lists() if name != NOT_PART_OF_THE_WISH)
    return hashlib.sha256(repr(fields).encode()).hexdigest()
