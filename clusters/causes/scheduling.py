"""The scheduler's words: why no node takes a pod. One message counts several reasons over all nodes.

    0/8 nodes are available: 2 Insufficient nvidia.com/gpu, 6 node(s) didn't match Pod's node
    affinity/selector. no new claims to deallocate, preemption: 0/8 nodes are available: …

What it says of preemption is noise: Berth never preempts. HAMi's scheduler counts cards in a form of its own, `3/8
CardInsufficientMemory`; told for nodes it stands behind how many of them: `2 3/8 CardInsufficientMemory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from clusters.causes.cause import Cause, Data, Diagnosis, first_match, in_words

_PREEMPTION = re.compile(r"[.,]?\s*(no new claims to deallocate,\s*)?preemption: .*", re.DOTALL)
_NODES = re.compile(r"0/(?P<total>\d+) nodes are available:\s*(?P<reasons>.*)", re.DOTALL)
_NEXT_REASON = re.compile(r",\s+(?=\d+(?:/\d+)? )")
_COUNTED = re.compile(r"(?P<count>\d+)(?:/(?P<of>\d+))? (?:nodes? )?(?:failed: )?(?P<reason>\S.*)", re.DOTALL)
_OF_CARDS = re.compile(r"(?P<count>\d+)/(?P<of>\d+) (?P<reason>[A-Z]\w+)")
_HAMI = re.compile(
    r"\b(Card[A-Z]\w+|NodeInsufficientDevice|ResourceQuotaNotFit|ExclusiveDeviceAllocateConflict|NumaNotFit"
    r"|AllocatedCardsInsufficientRequest)\b"
)


@dataclass(frozen=True)
class Reason:
    """Why `nodes` nodes (or cards) cannot take the pod; None of them: the message did not count."""

    nodes: int | None
    text: str
    of: int | None = None  # where it counts cards


def total_and_reasons(message: str) -> tuple[int | None, list[Reason]]:
    """Take a message of the scheduler apart."""
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
        if cards := _OF_CARDS.fullmatch(reason):  # of each of so many nodes
            nodes = count or 1
            yield Reason(nodes * int(cards["count"]), cards["reason"], nodes * int(cards["of"]))
        else:
            yield Reason(count, reason, int(counted["of"]) if counted and counted["of"] else None)


def diagnose(message: str) -> Diagnosis | None:
    """The most telling reason, with the others in short; None where the text is not the scheduler's."""
    if not (_NODES.search(message) or _HAMI.search(message)):
        return first_match(UNCOUNTED, message)
    total, reasons = total_and_reasons(message)
    found = [(rank, reason, data) for reason in reasons for rank, data in _ranked(reason)]
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
    """Data is flat, and words are made when it is read: the other reasons travel as code:nodes:detail."""
    detail = data.get("resource") or data.get("taint") or ""
    return f"{code}:{reason.nodes or 1}:{quote(detail, safe='')}"


def others_in_short(also: str) -> list[str]:
    """The other reasons as phrases; what cannot be read is left out."""
    phrases = []
    for entry in also.split():
        code, __, rest = entry.partition(":")
        nodes, __, detail = rest.partition(":")
        cause = BY_CODE.get(code)
        if cause is not None and nodes.isdecimal() and len(nodes) < 9:
            detail = unquote(detail)
            phrases.append(
                in_words(cause.in_short, {"nodes": int(nodes), "resource": detail, "taint": detail})
            )
    return phrases


# What the scheduler says without counting nodes.
UNCOUNTED = (
    Cause(
        "cluster_without_nodes",
        r"no nodes available to schedule pods",
        _("The cluster has no node at all that could run something."),
        _("Tell an admin: no node has joined, or all were removed."),
        "admin",
    ),
    Cause(
        "scheduling_gated",
        r"non-empty scheduling gates",
        _("Another component of the cluster holds it back from being placed."),
        _("Tell an admin if it does not start soon: something set a scheduling gate on it."),
        "admin",
    ),
    Cause(
        "kueue_waits",
        r"couldn't assign flavors|insufficient (unused )?quota .* in flavor|unavailable in ClusterQueue"
        r"|didn't fit in the remaining quota",
        _("The cluster's own queue (Kueue) has no room for it."),
        _(
            "It starts when there is room. If it lasts, tell an admin: that queue may not offer what was asked for."
        ),
        "admin",
    ),
    Cause(
        "gpu_none_fits",
        r"no available node, (all node scores|\d+ nodes) do not meet",
        _("HAMi found no GPU with room for what was asked."),
        _("It starts by itself when something ends. A smaller share of memory or compute may start now."),
    ),
)

# The most telling first: on a cluster with several pools, most nodes simply are not of the chosen one.
CAUSES = (
    Cause(
        "volume_claim_missing",
        r'persistentvolumeclaim "(?P<volume>[^"]*)" (not found|is being deleted)',
        _("Its volume %(volume)s does not exist, or is being deleted."),
        _("Nothing was started, and nothing else was touched. Tell an admin if you did not delete it."),
        "admin",
        ngettext_lazy("%(nodes)s node misses the volume", "%(nodes)s nodes miss the volume", "nodes"),
    ),
    Cause(
        "volume_lost",
        r"bound to non-existent persistentvolume",
        _("Its volume was removed from the cluster behind its back."),
        _("Tell an admin at once: the data may still be on the storage, and must not be overwritten."),
        "admin",
        ngettext_lazy("%(nodes)s node misses the volume", "%(nodes)s nodes miss the volume", "nodes"),
    ),
    Cause(
        "storage_class_missing",
        r'storageclass\S* "(?P<storage_class>[^"]*)" not found',
        _("The storage class %(storage_class)s does not exist in this cluster."),
        _("An admin has to name an existing class in the cluster's settings."),
        "admin",
        ngettext_lazy(
            "%(nodes)s node misses the storage class", "%(nodes)s nodes miss the storage class", "nodes"
        ),
    ),
    Cause(
        "volume_unbound",
        r"unbound immediate PersistentVolumeClaims|PersistentVolumeClaim is not bound",
        _("Its storage is still being made."),
        _("This usually takes seconds. If it lasts, tell an admin: the storage's provisioner may be down."),
        "admin",
        ngettext_lazy("%(nodes)s node waits for storage", "%(nodes)s nodes wait for storage", "nodes"),
    ),
    Cause(
        "gpu_memory_short",
        r"CardInsufficientMemory",
        _("No GPU has that much memory free: %(nodes)s of %(total)s looked at lack it."),
        _("Ask for less GPU memory, or wait: it starts by itself when a share is given back."),
        in_short=ngettext_lazy("%(nodes)s GPU lacks free memory", "%(nodes)s GPUs lack free memory", "nodes"),
    ),
    Cause(
        "gpu_cores_short",
        r"CardInsufficientCore|CardComputeUnitsExhausted",
        _("No GPU has that much compute free: %(nodes)s of %(total)s looked at lack it."),
        _("Ask for a smaller share, or wait: it starts by itself when one is given back."),
        in_short=ngettext_lazy(
            "%(nodes)s GPU lacks free compute", "%(nodes)s GPUs lack free compute", "nodes"
        ),
    ),
    Cause(
        "gpu_slots_full",
        r"CardTimeSlicingExhausted",
        _("Every GPU is shared by as many people as it may be."),
        _("It starts by itself when one of them stops."),
        in_short=ngettext_lazy("%(nodes)s GPU is shared out", "%(nodes)s GPUs are shared out", "nodes"),
    ),
    Cause(
        "gpu_not_empty",
        r"ExclusiveDeviceAllocateConflict",
        _("No GPU is wholly free: others share those that it looked at."),
        _("It starts by itself when one is empty. A share of a GPU may start now."),
        in_short=ngettext_lazy("%(nodes)s GPU is shared", "%(nodes)s GPUs are shared", "nodes"),
    ),
    Cause(
        "gpu_quota_full",
        r"ResourceQuotaNotFit",
        _("Your tenant has used up its share of GPU memory or compute on this cluster."),
        _("Stop something of your tenant's, or ask an admin for more."),
        in_short=ngettext_lazy(
            "%(nodes)s GPU is beyond your tenant's share",
            "%(nodes)s GPUs are beyond your tenant's share",
            "nodes",
        ),
    ),
    Cause(
        "gpu_devices_short",
        r"NodeInsufficientDevice|request devices nums cannot exceed",
        _("No node has as many GPUs as were asked for."),
        _("Ask for fewer GPUs."),
        in_short=ngettext_lazy(
            "%(nodes)s node has too few GPUs", "%(nodes)s nodes have too few GPUs", "nodes"
        ),
    ),
    Cause(
        "gpu_unhealthy",
        r"CardNotHealth",
        _("%(nodes)s of %(total)s GPUs are not healthy."),
        _("An admin has to look at them. Another pool may start now."),
        "admin",
        ngettext_lazy("%(nodes)s GPU is not healthy", "%(nodes)s GPUs are not healthy", "nodes"),
    ),
    Cause(
        "gpu_cordoned",
        r"CardCordoned",
        _("%(nodes)s of %(total)s GPUs were taken out of use by an admin."),
        _("Another pool may start now; an admin puts them back into use."),
        "admin",
        ngettext_lazy("%(nodes)s GPU is out of use", "%(nodes)s GPUs are out of use", "nodes"),
    ),
    Cause(
        "insufficient_resource",
        r"Insufficient (?P<resource>[^\s,]*[^\s,.])",
        _("No node has enough free %(resource)s: %(nodes)s of %(total)s nodes lack it."),
        _("It starts by itself when something ends. A smaller size or another pool may start now."),
        in_short=ngettext_lazy(
            "%(nodes)s node lacks %(resource)s", "%(nodes)s nodes lack %(resource)s", "nodes"
        ),
    ),
    Cause(
        "volume_on_other_node",
        r"volume node affinity conflict|match PersistentVolume's node affinity|NoVolumeZoneConflict",
        _(
            "Its disk lives on another node than those with room: %(nodes)s of %(total)s nodes cannot reach it."
        ),
        _("It starts when the disk's own node has room. To move now, launch anew without this disk."),
        in_short=ngettext_lazy(
            "%(nodes)s node cannot reach its disk", "%(nodes)s nodes cannot reach its disk", "nodes"
        ),
    ),
    Cause(
        "volume_no_space",
        r"enough free storage",
        _("No node has enough room for a local disk of this size: %(nodes)s of %(total)s nodes lack it."),
        _("Ask for a smaller disk."),
        in_short=ngettext_lazy("%(nodes)s node lacks disk space", "%(nodes)s nodes lack disk space", "nodes"),
    ),
    Cause(
        "volume_none_to_bind",
        r"find available persistent volumes to bind",
        _("The cluster has no volume of this kind left to hand out."),
        _("An admin has to add volumes, or choose a storage class that makes them by itself."),
        "admin",
        ngettext_lazy(
            "%(nodes)s node has no volume to hand out", "%(nodes)s nodes have no volume to hand out", "nodes"
        ),
    ),
    Cause(
        "volume_held_by_another",
        r"ReadWriteOncePod",
        _("Its volume is still held by another container."),
        _("It goes on when that container has ended."),
        in_short=ngettext_lazy(
            "%(nodes)s node sees the volume held", "%(nodes)s nodes see the volume held", "nodes"
        ),
    ),
    Cause(
        "volume_limit_reached",
        r"exceed max volume count",
        _("The nodes have as many volumes attached as they can have."),
        _("It starts by itself when something ends."),
        in_short=ngettext_lazy(
            "%(nodes)s node has too many volumes", "%(nodes)s nodes have too many volumes", "nodes"
        ),
    ),
    Cause(
        "node_pods_full",
        r"Too many pods",
        _("%(nodes)s of %(total)s nodes already run as many containers as they may."),
        _("It starts by itself when something ends. An admin can raise the nodes' limit of pods."),
        "admin",
        ngettext_lazy("%(nodes)s node is full", "%(nodes)s nodes are full", "nodes"),
    ),
    Cause(
        "node_ports_taken",
        r"free ports for the requested pod ports",
        _("The ports it asked for are taken on every node."),
        _("Tell an admin: Berth itself asks for no ports of nodes."),
        "admin",
        ngettext_lazy("%(nodes)s node has the port taken", "%(nodes)s nodes have the port taken", "nodes"),
    ),
    Cause(
        "node_under_pressure",
        r"node\.kubernetes\.io/(?P<taint>disk|memory|pid)-pressure",
        _("%(nodes)s of %(total)s nodes are short of %(taint)s themselves and take nothing new."),
        _("An admin has to free it. Another pool may start now."),
        "admin",
        ngettext_lazy(
            "%(nodes)s node is short of %(taint)s", "%(nodes)s nodes are short of %(taint)s", "nodes"
        ),
    ),
    Cause(
        "node_not_ready",
        r"node\.kubernetes\.io/(not-ready|unreachable|network-unavailable)|node\(s\) were not ready|node is not ready",
        _("%(nodes)s of %(total)s nodes do not answer at the moment."),
        _("It starts when they are back. Tell an admin if that lasts."),
        "admin",
        ngettext_lazy("%(nodes)s node does not answer", "%(nodes)s nodes do not answer", "nodes"),
    ),
    Cause(
        "node_cordoned",
        r"node\(s\) were unschedulable|node\.kubernetes\.io/unschedulable",
        _("%(nodes)s of %(total)s nodes were taken out of use for maintenance."),
        _("It starts when an admin puts them back into use. Another pool may start now."),
        "admin",
        ngettext_lazy("%(nodes)s node is in maintenance", "%(nodes)s nodes are in maintenance", "nodes"),
    ),
    Cause(
        "pod_rules_conflict",
        r"pod (anti-)?affinity|anti-affinity rules|topology spread constraints",
        _("It may not run beside what runs on %(nodes)s of %(total)s nodes."),
        _("It starts by itself when something ends."),
        in_short=ngettext_lazy(
            "%(nodes)s node runs a conflicting container",
            "%(nodes)s nodes run a conflicting container",
            "nodes",
        ),
    ),
    Cause(
        "device_claim_unmet",
        r"cannot allocate all claims|resourceclaim",
        _("The devices it asked for cannot be handed out now."),
        _("It starts by itself when something ends."),
        in_short=ngettext_lazy(
            "%(nodes)s node has no such device free", "%(nodes)s nodes have no such device free", "nodes"
        ),
    ),
    Cause(
        "node_tainted",
        r"(untolerated taint\S*|had taints?) \{(?P<taint>[^}]*?):?\s*\}",
        _("%(nodes)s of %(total)s nodes are reserved for something else (%(taint)s)."),
        _("Choose another pool. An admin can let this pool onto reserved nodes by its tolerations."),
        "admin",
        ngettext_lazy("%(nodes)s node is reserved", "%(nodes)s nodes are reserved", "nodes"),
    ),
    Cause(
        "node_reserved",  # which taint is not told: Kubernetes 1.36 and 1.18
        r"untolerated taint\(s\)|taints that the pod didn't tolerate",
        _("%(nodes)s of %(total)s nodes are reserved for something else, or not well."),
        _("Choose another pool. To an admin, kubectl describe nodes shows which taints they have."),
        "admin",
        ngettext_lazy(
            "%(nodes)s node is reserved or not well", "%(nodes)s nodes are reserved or not well", "nodes"
        ),
    ),
    Cause(
        "gpu_type_mismatch",
        r"CardTypeMismatch|CardUuidMismatch",
        _("None of the GPUs is of the kind that was asked for."),
        _("Choose another kind of GPU."),
        in_short=ngettext_lazy(
            "%(nodes)s GPU is of another kind", "%(nodes)s GPUs are of another kind", "nodes"
        ),
    ),
    Cause(
        "gpu_too_few_together",
        r"AllocatedCardsInsufficientRequest|NumaNotFit|CardMigTopologyInfeasible|CardNotFoundCustomFilterRule",
        _("Not as many GPUs of one node have room together as were asked for."),
        _("It starts by itself when something ends. Fewer GPUs may start now."),
        in_short=ngettext_lazy("%(nodes)s GPU alone has room", "%(nodes)s GPUs alone have room", "nodes"),
    ),
    Cause(
        "gpu_node_unknown_to_hami",
        r"^(node )?(unregistered|usage unavailable)",
        _("HAMi does not know the GPUs of %(nodes)s of %(total)s nodes."),
        _("Tell an admin: its device plugin does not run there, or has written nothing on the node yet."),
        "admin",
        ngettext_lazy("%(nodes)s node is unknown to HAMi", "%(nodes)s nodes are unknown to HAMi", "nodes"),
    ),
    Cause(
        "node_not_matching",
        r"match Pod's node affinity|match node selector|match pod's node affinity/selector",
        _("No node is what this pool asks for: %(nodes)s of %(total)s nodes are of another kind."),
        _(
            "Choose another pool. If this one should work, tell an admin: the labels of its nodes may have changed."
        ),
        "admin",
        ngettext_lazy("%(nodes)s node is of another kind", "%(nodes)s nodes are of another kind", "nodes"),
    ),
)

BY_CODE = {cause.code: cause for cause in CAUSES}
