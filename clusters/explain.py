"""What a message of a cluster means, for a person: a code with data now, words in their language when it is read.

    diagnosis = explain("scheduling", "0/8 nodes are available: 8 Insufficient nvidia.com/gpu. …")
    sentence(diagnosis.code, diagnosis.data), hint(diagnosis.code, diagnosis.data)

What no rule knows is shown as it is, and counted in UnknownCause: the list of rules to write next.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from clusters.causes import admission, containers, images, scheduling, services, volumes
from clusters.causes.cause import Audience, Cause, Diagnosis, first_match, in_words
from clusters.models import UnknownCause

UNKNOWN = "unknown"
LONGEST_TEXT = 2000
MOST_UNKNOWN = 1000
# What stands in the log of a node's kernel or of its parts is read by the rules of containers first.
_READ_LIKE = {"gpu": "container", "node": "container"}
# Elsewhere than at an image, "not found" and "denied" are about something else.
_ABOUT_IMAGES = re.compile(r"\b(image|pull|registry|manifest)", re.IGNORECASE)
# What differs between two messages of one kind: quoted names, ids, figures.
_VARYING = re.compile(r'"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d+')

TABLES: dict[str, tuple[Cause, ...]] = {
    "scheduling": scheduling.UNCOUNTED + scheduling.CAUSES,
    "image": images.CAUSES,
    "admission": admission.CAUSES,
    "volume": volumes.CAUSES,
    "container": containers.CAUSES,
    "service": services.CAUSES,
}

_UNKNOWN_SENTENCE = _("The cluster says: %(raw)s")
_UNKNOWN_HINT = _("Berth does not know this message yet. If it lasts, show it to an admin.")

BY_CODE = {cause.code: cause for table in TABLES.values() for cause in table}


def explain(source: str, text: str, **facts: Any) -> Diagnosis:
    """The cause behind a message. `source` is where it stood (a key of TABLES); facts join the data."""
    diagnosis = diagnose(source, text, **facts)
    if not diagnosis.known:
        count(source, diagnosis.data["raw"])
    return diagnosis


def diagnose(source: str, text: str, **facts: Any) -> Diagnosis:
    """`explain` without counting what is unknown. Never raises, whatever the text."""
    plain = _storable(text)
    found = scheduling.diagnose(plain) if source == "scheduling" else None
    found = found or first_match(_in_order(source, plain), plain) or scheduling.diagnose(plain)
    if found is None:
        return Diagnosis(UNKNOWN, {"raw": plain}, known=False)
    told = {name: value for name, value in found.data.items() if value != ""}
    return Diagnosis(found.code, {**facts, **told})


def sentence(code: str, data: Mapping[str, Any]) -> str:
    """One sentence in the reader's language."""
    cause = BY_CODE.get(code)
    text = in_words(cause.sentence if cause else _UNKNOWN_SENTENCE, {"raw": code, **data})
    others = scheduling.others_in_short(str(data.get("also", "")))
    if not others:
        return text
    also = _("Others: %(others)s.") % {"others": _(", ").join(others)}
    return f"{text} {also}"


def hint(code: str, data: Mapping[str, Any]) -> str:
    """What to do about it."""
    cause = BY_CODE.get(code)
    return in_words(cause.hint if cause else _UNKNOWN_HINT, data)


def audience(code: str) -> Audience:
    """Who can do something about it."""
    cause = BY_CODE.get(code)
    return cause.audience if cause else "admin"


def _in_order(source: str, text: str) -> Iterator[Cause]:
    """The source's own rules first: messages quote each other across sources. What the scheduler counts is no rule
    for others: "insufficient" alone says little."""
    own = _READ_LIKE.get(source, source)
    yield from TABLES.get(own, ())
    for name, table in TABLES.items():
        if name not in (own, "scheduling") and (name != "image" or _ABOUT_IMAGES.search(text)):
            yield from table


def _storable(text: str) -> str:
    """Without what PostgreSQL cannot keep, and not endless."""
    return text[:LONGEST_TEXT].replace("\0", "").encode(errors="replace").decode().strip()


def count(source: str, text: str) -> None:
    """Remember a message without a rule: one row per kind, whatever names and figures it mentions."""
    kind = _VARYING.sub("…", text.lower())
    digest = hashlib.sha256(f"{source}\n{kind}".encode()).hexdigest()
    if UnknownCause.objects.filter(digest=digest).update(count=F("count") + 1, last_at=timezone.now()):
        return
    if UnknownCause.objects.count() < MOST_UNKNOWN:
        row = UnknownCause(digest=digest, source=source[:32], text=text)
        UnknownCause.objects.bulk_create([row], ignore_conflicts=True)
