"""Messages that no rule explains, counted for admins: one row per kind, whatever names and figures it mentions.

People see them as the cluster wrote them. Admins dismiss messages that need no rule; these are still counted.
"""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.access import Actor
from accounts.trail import audit
from clusters.models import UnknownCause

MOST_KINDS = 1000
LONGEST_TOLD = 240
# Parts that differ between messages of one kind: quoted names, ids, figures.
_VARYING = re.compile(r'"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d+')


def count(source: str, text: str, cluster: UUID | None = None) -> None:
    """Count a message. Its row keeps the last known cluster that sent it."""
    digest = digest_of(source, text)
    where = {"cluster_id": cluster} if cluster else {}
    known = UnknownCause.objects.filter(digest=digest)
    if known.update(count=F("count") + 1, last_at=timezone.now(), **where):
        return
    if UnknownCause.objects.count() < MOST_KINDS:
        row = UnknownCause(digest=digest, source=source[:32], text=text, **where)
        UnknownCause.objects.bulk_create([row], ignore_conflicts=True)


def digest_of(source: str, text: str) -> str:
    """Return a digest that is the same for all messages of one kind."""
    kind = _VARYING.sub("…", text.lower())
    return hashlib.sha256(f"{source}\n{kind}".encode()).hexdigest()


@transaction.atomic
def dismiss(actor: Actor, row: UnknownCause) -> bool:
    """Dismiss the message. Return False if it was dismissed already."""
    if not UnknownCause.objects.filter(pk=row.pk, dismissed_at=None).update(dismissed_at=timezone.now()):
        return False
    data = {"source": row.source, "text": row.text[:LONGEST_TOLD]}
    audit.record(actor, "unknowncause.dismiss", target=row, data=data)
    return True


@transaction.atomic
def delete(actor: Actor, row: UnknownCause) -> None:
    """Delete the message and its count, as a rule explains it now. It is counted anew if it comes again."""
    audit.record(actor, "unknowncause.delete", target=row, data={"name": row.text[:LONGEST_TOLD]})
    row.delete()
