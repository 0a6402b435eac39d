"""Explanation of a cluster's message: a code with data when it arrives, words in the reader's language when read.

    diagnosis = diagnose("scheduling", "0/8 nodes are available: 8 Insufficient nvidia.com/gpu. …")
    sentence(diagnosis.code, diagnosis.data), hint(diagnosis.code, diagnosis.data)

A message that no rule knows is shown as it is, and counted (unknown_causes.py): the list of rules to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from clusters.causes import (
    admission,
    containers,
    gpus,
    health,
    images,
    nodes,
    scheduling,
    services,
    volumes,
    ways,
)
from clusters.causes.cause import Audience, Cause, Diagnosis, first_match, in_words
from clusters.causes.commands import Step, commands
from clusters.causes.renamed import current

UNKNOWN = "unknown"
LONGEST_TEXT = 2000
# Logs of a node's kernel and components are read by the rules of containers first.
_READ_LIKE = {"gpu": "container", "node": "container"}
# Rules for one source apply to texts of another only if they match here: "not found" and "denied" mean something else
# where no image is named, as do "timed out" without a volume and "already allocated" without a service.
_ABOUT = {
    # A right that a program in a container lacks is no right of Berth's.
    "admission": re.compile(r'^(?!.*(?:\bUser \\*"|\(401\)|Unauthorized))', re.IGNORECASE | re.DOTALL),
    "image": re.compile(r"\b(?:image|pull|registry|manifest)", re.IGNORECASE),
    "volume": re.compile(
        r"volume|mount|attach|storage|superblock|file ?system|no space|\b(?:pvc|csi|rbd|nfs|osd_|mds_|health_)|ceph",
        re.IGNORECASE,
    ),
    "service": re.compile(r"metallb|load ?balancer|node ?port|\bIPs?\b|address", re.IGNORECASE),
}

# A kubelet reports this for pods that are ending, or that it resumes after its restart. It reports lasting faults
# in other words too.
_PASSING = re.compile(r'\bobject "[^"]*"/"[^"]*" not registered')

TABLES: dict[str, tuple[Cause, ...]] = {
    "scheduling": scheduling.UNCOUNTED + scheduling.CAUSES,
    "image": (nodes.UNWELL, nodes.SHORT_OF_DISK, *images.CAUSES),
    "admission": admission.CAUSES,
    "volume": volumes.CAUSES,
    # A workspace's log may quote a browser or ssh.
    "container": ways.CAUSES + gpus.CAUSES + nodes.CAUSES + containers.CAUSES,
    "service": services.CAUSES,
    "way": ways.CAUSES,
}

_UNKNOWN_SENTENCE = _("Message from the cluster: %(raw)s")
_UNKNOWN_HINT = _("Berth does not know this message yet. If this continues, show it to an admin.")

BY_CODE = {cause.code: cause for table in (*TABLES.values(), health.CAUSES) for cause in table}


def is_passing(text: str) -> bool:
    """Return True if the text reports no fault."""
    return _PASSING.search(text) is not None


def diagnose(source: str, text: str, **facts: Any) -> Diagnosis:
    """Return the cause behind a message. `source` is where it stood (a key of TABLES); facts join the data.

    Never raises, whatever the text.
    """
    return _diagnose(source, _storable(text), facts)


def _diagnose(source: str, plain: str, facts: Mapping[str, Any], *, is_guessed: bool = False) -> Diagnosis:
    found = scheduling.diagnose(plain) if source == "scheduling" else None
    causes = (one for one in _in_order(source, plain) if not (is_guessed and one.of_its_source))
    found = found or first_match(causes, plain) or scheduling.diagnose(plain)
    if found is None:
        return Diagnosis(UNKNOWN, {"raw": plain}, known=False)
    told = {name: value for name, value in found.data.items() if value != ""}
    return Diagnosis(found.code, {**facts, **told})


# What a text without a source is about, by its own words; else it is read like the log of a container.
_SOURCES = {
    "scheduling": re.compile(r"\b0/\d+ nodes are |FailedScheduling|node\(s\) ", re.IGNORECASE),
    "image": re.compile(r"ErrImage|ImagePull|pull(?:ing)? (?:and unpack )?image|\bregistry\b", re.IGNORECASE),
    "admission": re.compile(
        r"admission webhook|call(?:ing)? webhook|is forbidden:|is invalid:|Error from server|exceeded quota",
        re.IGNORECASE,
    ),
    "volume": re.compile(
        r"^(?!.*nvidia-container).*(?:\bM(?:ount|ap)Volume\.|\bmount volumes|AttachVolume|FailedMount"
        r"|\bmount(?:ing)?\b[^\n]*(?:error|fail)|\battach\w* (?:volume|disk)"
        r"|\bPersistentVolume|\b(?:osd|mds)\b|\blibceph|\bHEALTH_(?:WARN|ERR)"
        r"|super ?block|\bprovision|appears to be unformatted)",
        re.IGNORECASE | re.DOTALL,
    ),
    "service": re.compile(
        r"metallb|LoadBalancer|AllocationFailed|allocate IP for \"|IP allocation failed", re.IGNORECASE
    ),
}


def diagnose_any(text: str) -> Diagnosis:
    """Return the cause behind a text that somebody pasted: nobody says where it stood."""
    source = next(
        (source for source, words in _SOURCES.items() if words.search(text[:LONGEST_TEXT])), "container"
    )
    told = _diagnose(source, _storable(text), {}, is_guessed=True)
    return told if told.known else diagnose(source, text)


def sentence(code: str, data: Mapping[str, Any]) -> str:
    """Return a sentence in the reader's language; if nodes or GPUs were counted, add the count per reason."""
    code, data = current(code, data)
    cause = BY_CODE.get(code)
    text = in_words(cause.sentence if cause else _UNKNOWN_SENTENCE, {"raw": code, **data})
    reasons = _in_short(code, data)
    if not reasons:
        return text
    facts = {"total": data.get("total", "?"), "reasons": _(", ").join(reasons)}
    counted = _("Checked %(total)s: %(reasons)s.") % facts
    return f"{text} {counted}"


def _in_short(code: str, data: Mapping[str, Any]) -> list[str]:
    """Return a phrase with the count of each reason; empty if the one reason holds for all."""
    others = str(data.get("also", ""))
    if not others and data.get("nodes") == data.get("total"):
        return []
    found: list[tuple[str, Mapping[str, Any]]] = [(code, data), *scheduling.counted(others)]
    phrases = []
    for each, its_data in (current(*one) for one in found):
        cause = BY_CODE.get(each)
        if cause is not None and cause.in_short and "nodes" in its_data:
            phrases.append(in_words(cause.in_short, its_data))
    return phrases


def hint(code: str, data: Mapping[str, Any]) -> str:
    """Return what to do about the cause."""
    code, data = current(code, data)
    cause = BY_CODE.get(code)
    return in_words(cause.hint if cause else _UNKNOWN_HINT, data)


def steps(code: str, node: str = "") -> tuple[Step, ...]:
    """Return the commands for admins, each with its purpose, in the admin's language."""
    return commands(current(code, {})[0], node)


def listed(code: str) -> str:
    """Return the code under which the page of all causes lists it; empty if it does not."""
    now = current(code, {})[0]
    return now if now in BY_CODE else ""


def audience(code: str) -> Audience:
    """Return who can fix the cause."""
    cause = BY_CODE.get(current(code, {})[0])
    return cause.audience if cause else "admin"


def _in_order(source: str, text: str) -> Iterator[Cause]:
    """Yield the source's own rules first, then those of others, since messages quote each other across sources.

    The scheduler's rules are for no other source: "insufficient" alone says little.
    """
    own = _READ_LIKE.get(source, source)
    yield from TABLES.get(own, ())
    for name, table in TABLES.items():
        if name not in (own, "scheduling") and (name not in _ABOUT or _ABOUT[name].search(text)):
            yield from (cause for cause in table if not cause.of_its_source)


def _storable(text: str) -> str:
    """Return the text cut to a limit, without characters that PostgreSQL cannot store."""
    return text[:LONGEST_TEXT].replace("\0", "").encode(errors="replace").decode().strip()
