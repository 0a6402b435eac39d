"""Reasons why no node takes a pod, from the scheduler's messages. A message counts several of them over all nodes.

    0/8 nodes are available: 2 Insufficient nvidia.com/gpu, 6 node(s) didn't match Pod's node
    affinity/selector. no new claims to deallocate, preemption: 0/8 nodes are available: …

Its words about preemption are noise: Berth's pods preempt no others. HAMi's scheduler counts cards in a form of its
own, `3/8 CardInsufficientMemory`; a count of nodes may stand in front: `2 3/8 CardInsufficientMemory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from clusters.causes import nodes, volumes
from clusters.causes.cause import Cause, Data, Diagnosis, first_match
from clusters.causes.gpus import SHARE_SHORT, TOO_FEW_TOGETHER, UNHEALTHY

_PREEMPTION = re.compile(r"[.,]?\s*(no new claims to deallocate,\s*)?preemption: .*", re.DOTALL)
_NODES = re.compile(r"0/(?P<total>\d+) nodes are (?:un)?available:\s*(?P<reasons>.*)", re.DOTALL)
_NEXT_REASON = re.compile(r",\s+(?=\d+(?:/\d+)? )")
_COUNTED = re.compile(r"(?P<count>\d+)(?:/(?P<of>\d+))? (?:nodes? )?(?:failed: )?(?P<reason>\S.*)", re.DOTALL)
_OF_CARDS = re.compile(r"(?P<count>\d+)/(?P<of>\d+) (?P<reason>[A-Z]\w+)")
_HAMI = re.compile(
    r"\b(Card[A-Z]\w+|NodeInsufficientDevice|ResourceQuotaNotFit|ExclusiveDeviceAllocateConflict|NumaNotFit"
    r"|AllocatedCardsInsufficientRequest)\b"
)


@dataclass(frozen=True)
class Reason:
    """Reason why `nodes` nodes (or cards) cannot take the pod. None: the message did not count."""

    nodes: int | None
    text: str
    of: int | None = None  # total of cards, if it counts cards


def total_and_reasons(message: str) -> tuple[int | None, list[Reason]]:
    """Split a message of the scheduler into its total and its reasons."""
    plain = _PREEMPTION.sub("", message).strip()
    whole = _NODES.search(plain)
    total = int(whole["total"]) if whole else None
    reasons = list(_counted(whole["reasons"] if whole else plain))
    if total is None:
        totals = [int(of) for of in re.findall(r"\d+/(\d+) Card", plain)]
        total = max(totals, default=None)
    return total, reasons


def _counted(text: str) -> Iterator[Reason]:
    for part in _NEXT_REASON.split(text):
        counted = _COUNTED.fullmatch(part.strip())
        reason = (counted["reason"] if counted else part).strip().rstrip(".")
        if not reason:
            continue
        count = int(counted["count"]) if counted else None
        if cards := _OF_CARDS.fullmatch(reason):  # counted on each of `count` nodes
            nodes = count or 1
            yield Reason(nodes * int(cards["count"]), cards["reason"], nodes * int(cards["of"]))
        else:
            yield Reason(count, reason, int(counted["of"]) if counted and counted["of"] else None)


def diagnose(message: str) -> Diagnosis | None:
    """Return the most telling reason, with the others in short; None if the text is not the scheduler's."""
    if not (_NODES.search(message) or _HAMI.search(message)):
        return first_match(UNCOUNTED, message)
    total, reasons = total_and_reasons(message)
    found = _alike_together((rank, reason, data) for reason in reasons for rank, data in _ranked(reason))
    if not found:
        return None
    found.sort(key=lambda entry: (entry[0], _gpus_first(entry[2])))
    rank, reason, data = found[0]
    nodes = reason.nodes if reason.nodes is not None else total
    total = reason.of or total
    others = " ".join(_encoded(CAUSES[rank].code, reason, data) for rank, reason, data in found[1:6])
    return Diagnosis(
        CAUSES[rank].code, {**data, "nodes": nodes or 0, "total": total or nodes or 0, "also": others}
    )


def _alike_together(found: Iterable[tuple[int, Reason, Data]]) -> list[tuple[int, Reason, Data]]:
    """Add up the nodes of reasons that are two wordings of one cause."""
    by_cause: dict[tuple[str, str], tuple[int, Reason, Data]] = {}
    for rank, reason, data in found:
        key = CAUSES[rank].code, str(data)
        first, earlier, _same = by_cause.get(key, (rank, Reason(None, ""), data))
        nodes = (earlier.nodes or 0) + (reason.nodes or 0) or None
        by_cause[key] = min(first, rank), replace(reason, nodes=nodes), data
    return list(by_cause.values())


def _ranked(reason: Reason) -> Iterator[tuple[int, Data]]:
    for rank, cause in enumerate(CAUSES):
        data = cause.read(reason.text)
        if data is not None:
            yield rank, data
            return


def _gpus_first(data: Data) -> int:
    resource = data.get("resource", "")
    return 0 if "/" in resource else 1 if resource == "memory" else 2


def _encoded(code: str, reason: Reason, data: Data) -> str:
    """Return the reason as code:nodes:detail: data is flat, and put into words only when it is read."""
    detail = data.get("resource") or data.get("taint") or ""
    return f"{code}:{reason.nodes or 1}:{quote(detail, safe='')}"


def counted(also: str) -> Iterator[tuple[str, Data]]:
    """Yield the other reasons, as code and data; skip what cannot be read."""
    for entry in also.split():
        code, __, rest = entry.partition(":")
        count, __, detail = rest.partition(":")
        if count.isdecimal() and len(count) < 9:
            named = dict.fromkeys(("resource", "taint"), unquote(detail)) if detail else {}
            yield code, {"nodes": int(count), **named}


CLUSTER_QUEUE_WAITS = Cause(
    "cluster_queue_waits",
    r"non-empty scheduling gates|couldn't assign flavors|(?:Local|Cluster)Queue \S+ (?:doesn't exist|is inactive)"
    r"|insufficient (?:unused )?quota .* in flavor"
    r"|unavailable in ClusterQueue|match ClusterQueue selector|didn't fit in the remaining quota|ResourceQuotaNotFit"
    r"|ExceedsGPUQuota|queue resource quota insufficient|pod ?group\b[^\n]{0,60}\bnot (?:ready|found|enough)"
    r"|minMember|minAvailable"
    r"|\bgang\b[^\n]{0,60}(?:not|fail|unschedulable)|quota (?:not enough|is not enough|insufficient)|(?:queue"
    r"|workload)\b[^\n]{0,60}"
    r"\b(?:not (?:admitted|found|enough|open)|is (?:closed|stopped)|exceed\w*|insufficient)"
    r"|PodsReady timeout|enough sibling pods|\bis overused\b",
    _("A queue or quota of another component of the cluster, such as Kueue, HAMi or Volcano, holds it back."),
    _(
        "It starts when there is room: stop a workspace of your team. If this continues, tell an admin: "
        "that queue may not offer what was requested."
    ),
    "admin",
    ngettext_lazy("%(nodes)s is over your team's quota", "%(nodes)s are over your team's quota", "nodes"),
)

INSUFFICIENT = Cause(
    "insufficient_resource",
    r"(?:Insufficient |cannot allocate all (?=claims)|\b(?=resourceclaim (?:not available"
    r"|in use)))(?P<resource>[^\s,]*[^\s,.])"
    r"|max (?:node group size|limit) reached|node\(s\) resource fit failed|exceed limits for nodepool",
    _("No node has enough free %(resource)s."),
    _("Starts automatically when something ends. A smaller size or another pool may start now."),
    in_short=ngettext_lazy("%(nodes)s node lacks %(resource)s", "%(nodes)s nodes lack %(resource)s", "nodes"),
)

# The same cause, for a local disk.
NO_DISK_SPACE = replace(
    INSUFFICIENT,
    pattern=r"(?:enough free |not enough lv |Insufficient \S+/)(?P<resource>storage|capacity)\b",
)

# The same, in words without a count.
NOT_ENOUGH = replace(
    INSUFFICIENT, pattern=r"(?P<resource>ephemeral-storage|[\w.-]+/[\w.-]+) (?:is )?not enough"
)

# The same, in the words of KAI's scheduler.
TOO_FEW_RESOURCES = replace(
    INSUFFICIENT, pattern=r"node\(s\) didn't have enough resources?: (?P<resource>[\w./ -]*\w)"
)

# HAMi's own scheduler never counts these itself, so another one got the pod.
# https://github.com/Project-HAMi/HAMi, extender configuration "ignoredByScheduler"
HAMI_NOT_HANDLED = Cause(
    "hami_not_handled",
    r"Insufficient (?P<resource>\S+/gpu(?:mem(?:-percentage)?|cores))\b",
    _(
        "It requests shares of a GPU (%(resource)s), and HAMi's scheduler did not take it: no other can count them."
    ),
    _(
        "An admin has to check that HAMi's scheduler and its webhook run, and which scheduler the pool names. "
        "Another pool may start now."
    ),
    "admin",
    ngettext_lazy("%(nodes)s node offers no shares", "%(nodes)s nodes offer no shares", "nodes"),
)

NO_DRIVER = replace(volumes.NOT_MOUNTABLE, pattern=r"driver not found (?:at|on) node")

NOT_READY = Cause(
    "node_not_ready",
    r"node\.kubernetes\.io/(?:not-ready|unreachable)|node\(s\) were not ready|node is not ready"
    r"|no nodes available to schedule pods",
    _("Nodes that could run it do not answer at the moment, or there are none."),
    _("It starts when they are back. If this continues, tell an admin. Another pool may start now."),
    "admin",
    ngettext_lazy("%(nodes)s node does not answer", "%(nodes)s nodes do not answer", "nodes"),
)

NOT_MATCHING = Cause(
    "node_not_matching",
    r"match Pod's node affinity|match node selector|MatchNodeSelector|CheckServiceAffinity"
    r"|incompatible with (?:nodepool|provisioner)",
    _("No node matches this pool, or a rule keeps it off the matching nodes."),
    _(
        "Choose another pool or kind of GPU. If this one should work, tell an admin: the labels of its nodes may "
        "have changed, HAMi's device plugin may not run there, or a rule that is not Berth's is in the way."
    ),
    "admin",
    ngettext_lazy("%(nodes)s does not fit", "%(nodes)s do not fit", "nodes"),
)

# A rule keeps the pod off its own pool's nodes. It says more than a taint does; "node of another pool" says least.
KEPT_OFF = replace(
    NOT_MATCHING,
    pattern=r"pod (?:anti-)?affinity|pods anti-affinity|topology spread constraints|free ports for the requested pod"
    r"|match the requested node name|scheduler-enforced node affinity|declared features"
    r"|PodsAntiAffinityRulesNotMatch|MatchInterPodAffinity|PodFitsHostPorts"
    r"|CardTypeMismatch|CardUuidMismatch|^(?:node )?(?:unregister|usage unavailable)"
    r"|\bnode\(s\) (?:didn't|did not|don't|do not) (?:match|satisfy|have|meet|fit)(?! Pod's node affinity"
    r"| node selector)",
)

# KAI's scheduler, about a kind of GPU that no node has at all.
NONE_OFFERS_IT = replace(NOT_MATCHING, pattern=r"\bno node in the \S+ node-?pool has \S+ resources")

# Causes in messages that count no nodes.
UNCOUNTED = (NOT_READY, NONE_OFFERS_IT, CLUSTER_QUEUE_WAITS, SHARE_SHORT, NOT_ENOUGH, TOO_FEW_RESOURCES)

# Most telling first: in a cluster with several pools, most nodes simply belong to others than the chosen one.
CAUSES = (
    volumes.MISSING,
    volumes.CLASS_MISSING,
    volumes.UNBOUND,
    HAMI_NOT_HANDLED,
    SHARE_SHORT,
    CLUSTER_QUEUE_WAITS,
    TOO_FEW_TOGETHER,
    UNHEALTHY,
    NO_DISK_SPACE,
    INSUFFICIENT,
    NOT_ENOUGH,
    TOO_FEW_RESOURCES,
    NO_DRIVER,
    volumes.ON_OTHER_NODE,
    volumes.DISK_FULL,
    volumes.HELD_ELSEWHERE,
    nodes.LIMIT_REACHED,
    nodes.SHORT_OF_DISK,
    nodes.SHORT_OF_MEMORY,
    nodes.NETWORK_DOWN,
    NOT_READY,
    Cause(
        "node_cordoned",
        r"node\(s\) were unschedulable|node\.kubernetes\.io/unschedulable|NodeNotSchedulable",
        _("Nodes that could run it were taken out of use for maintenance."),
        _("It starts when an admin puts them back into use. Another pool may start now."),
        "admin",
        ngettext_lazy("%(nodes)s node is in maintenance", "%(nodes)s nodes are in maintenance", "nodes"),
    ),
    KEPT_OFF,
    Cause(
        "node_tainted",
        # Kubernetes 1.36 and 1.18 do not name the taint.
        r"(?:(?:untolerated taint\S*|had taints?) \{|(?=untolerated taint\(s\)|taints that the pod))"
        r"(?P<taint>(?<=\{)[^}]*?(?=:?\s*\})|untolerated taint\(s\)|taints that the pod didn't tolerate)",
        _("Nodes are reserved for something else, or unhealthy (%(taint)s)."),
        _(
            "Choose another pool. An admin can allow this pool on reserved nodes with tolerations; kubectl "
            "describe nodes shows the taints."
        ),
        "admin",
        ngettext_lazy("%(nodes)s node is reserved", "%(nodes)s nodes are reserved", "nodes"),
    ),
    NOT_MATCHING,
)
