"""Messages that no rule explains: counted, one row per kind whatever names and figures it mentions, for admins to read.

People see them as the cluster said them. One that needs no rule is dismissed: it is counted on, and asks for nobody.
"""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts import audit
from accounts.access import Actor
from clusters.models import UnknownCause

MOST_KINDS = 1000
LONGEST_TOLD = 240
# What differs between two messages of one kind: quoted names, ids, figures.
_VARYING = re.compile(r'"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d+')


def count(source: str, text: str, cluster: UUID | None = None) -> None:
    """Once more. The cluster, where it is known, is the one that said it last."""
    digest = digest_of(source, text)
    where = {"cluster_id": cluster} if cluster else {}
    known = UnknownCause.objects.filter(digest=digest)
    if known.update(count=F("count") + 1, last_at=timezone.now(), **where):
        return
    if UnknownCause.objects.count() < MOST_KINDS:
        row = UnknownCause(digest=digest, source=source[:32], text=text, **where)
        UnknownCause.objects.bulk_create([row], ignore_conflicts=True)


def digest_of(source: str, text: str) -> str:
    """The same for all messages of one kind."""
    kind = _VARYING.sub("…", text.lower())
    return hashlib.sha256(f"{source}\n{kind}".encode()).hexdigest()


@transaction.atomic
def dismiss(actor: Actor, row: UnknownCause) -> bool:
    """False: it is dismissed already."""
    if not UnknownCause.objects.filter(pk=row.pk, dismissed_at=None).update(dismissed_at=timezone.now()):
        return False
    data = {"source": row.source, "text": row.text[:LONGEST_TOLD]}
    audit.record(actor, "unknowncause.dismiss", target=row, data=data)
    return True
