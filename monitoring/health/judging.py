"""Judging of a node: read its facts, decide what is wrong (`rules.py`), write it down.

Called in the caller's transaction whenever a fact that counts has changed. Calls may come too often, late, or at the
same time. The intake of a report holds `lock` from before its first row of the node, and other writes about a node are
made in a transaction of that node alone. So a report and a change of the node cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.live import publish
from accounts.locks import one_at_a_time
from clusters import signals
from clusters.models import Cluster, Gpu, Node
from monitoring import enqueue
from monitoring.health.rules import (
    Observed,
    Out,
    Verdict,
    boot_of,
    errors,
    is_slowed,
    verdicts,
    was_taken_away,
    why_out,
)
from monitoring.models import AgentState, FailedStart, Trouble, XidEvent
from monitoring.validation.queries import failed
from quotas.live import GROUP as POOLS
from vitals.pulse import heard_since

About = Trouble.About
OF_A_NODE = (About.NODE, About.GPU, About.VOLUME)
# Older errors were judged when they came, and troubles remember them.
LOOKS_BACK = timedelta(days=1)


def lock(cluster_id: UUID, node_name: str) -> None:
    one_at_a_time(f"monitoring.node {cluster_id} {node_name}")


@transaction.atomic
def judge(cluster_id: UUID, node_name: str, *, tells: bool = True) -> None:
    """Judge the node. `tells=False`: the caller notifies people itself, once for many nodes."""
    lock(cluster_id, node_name)
    now = timezone.now()
    seen = observe(cluster_id, node_name, now)
    note_changes(seen.gpus, now)
    found = verdicts(seen)
    is_changed = write(cluster_id, node_name, seen.standing, found, now)
    if take_out(seen, found):
        transaction.on_commit(partial(_send_capacity_changed, cluster_id), robust=True)
    if is_changed:
        publish(POOLS, {"type": "pools.changed"})
    if tells and (is_changed or seen.standing):  # the holders may have changed
        enqueue.tell_of_health(cluster_id)


def _send_capacity_changed(cluster_id: UUID) -> None:
    for cluster in Cluster.objects.filter(pk=cluster_id):
        signals.capacity_changed.send_robust(sender=Cluster, cluster=cluster)


def observe(cluster_id: UUID, node_name: str, now: datetime) -> Observed:
    of_node = {"cluster": cluster_id, "node": node_name}
    troubles = Trouble.objects.filter(**of_node, about__in=OF_A_NODE)
    node = Node.objects.filter(cluster=cluster_id, name=node_name).first()
    # A trouble that ended while its node ran on counts again if nothing settled it: the node was away and is the same.
    ended = troubles.filter(ended_at__gt=now - LOOKS_BACK, data__has_key="xid").exclude(
        data__boot=boot_of(node)
    )
    xids = XidEvent.objects.filter(**of_node, at__gt=now - LOOKS_BACK)
    ends = ended.order_by().values("subject", "code").annotate(at=Max("ended_at"))
    return Observed(
        name=node_name,
        now=now,
        node=node,
        agent=AgentState.objects.filter(**of_node).first(),
        gpus=list(Gpu.objects.filter(**of_node)),
        # The newest of each Xid is enough, and there may be thousands.
        xids=list(xids.order_by("gpu", "xid", "-at").distinct("gpu", "xid")),
        failed_starts=list(FailedStart.objects.filter(**of_node)),
        standing=list(troubles.filter(ended_at=None)),
        settled={(row["subject"], row["code"]): row["at"] for row in ends},
        hears_since=heard_since("web"),
        failed_test_at=failed_test.ended_at if (failed_test := failed(cluster_id, node_name)) else None,
    )


def note_changes(gpus: Iterable[Gpu], now: datetime) -> None:
    """Set since when GPUs are slowed, as a short slowdown is no problem. Lower trusted errors if the counter fell."""
    for gpu in gpus:
        if is_slowed(gpu) != (gpu.slowed_since is not None):
            gpu.slowed_since = now if is_slowed(gpu) else None
            gpu.save(update_fields=["slowed_since"])
        if "ecc_uncorrected_since_boot" in gpu.sample and errors(gpu) < gpu.trusted_errors:
            gpu.trusted_errors = errors(gpu)
            gpu.save(update_fields=["trusted_errors"])


def write(
    cluster_id: UUID, node_name: str, standing: Iterable[Trouble], found: Iterable[Verdict], now: datetime
) -> bool:
    """Open new troubles, end resolved ones, update the rest. Return True if one was opened or ended."""
    wanted = {verdict.key: verdict for verdict in found}
    known = {(trouble.about, trouble.subject, trouble.code): trouble for trouble in standing}
    there = {key: trouble for key, trouble in known.items() if goes_on(trouble, wanted.get(key))}
    over = [trouble.pk for key, trouble in known.items() if key not in there]
    Trouble.objects.filter(pk__in=over).update(ended_at=now)
    new = [verdict for key, verdict in wanted.items() if key not in there]
    Trouble.objects.bulk_create(
        Trouble(
            cluster_id=cluster_id,
            node=node_name,
            about=verdict.about,
            subject=verdict.subject,
            code=verdict.code,
            data=dict(verdict.data),
            takes_out=verdict.out != Out.NOTHING,
            since=now,
        )
        for verdict in new
    )
    for key in wanted.keys() & there.keys():
        data, takes_out = dict(wanted[key].data), wanted[key].out != Out.NOTHING
        if (there[key].data, there[key].takes_out) != (data, takes_out):
            Trouble.objects.filter(pk=there[key].pk).update(data=data, takes_out=takes_out)
    return bool(over or new)


def goes_on(trouble: Trouble, verdict: Verdict | None) -> bool:
    """Return True if the trouble lasts. An Xid's ends even if the GPU's state has its code, so that the end is seen."""
    return verdict is not None and ("xid" not in trouble.data or "xid" in verdict.data)


def take_out(seen: Observed, found: Sequence[Verdict]) -> bool:
    """Set what the queue must not use. Return True if it changed."""
    changed = 0
    if seen.node is not None:
        codes = {
            "out_code": why_out(found, Out.NODE, seen.name),
            "gpus_out_code": why_out(found, Out.GPUS, seen.name),
        }
        changed += Node.objects.filter(pk=seen.node.pk).exclude(**codes).update(**codes)
    for gpu in seen.gpus:
        if was_taken_away(gpu, seen):
            gpu.delete()
            continue
        code = why_out(found, Out.GPU, gpu.uuid)
        if gpu.out_code != code:
            changed += Gpu.objects.filter(pk=gpu.pk).update(out_code=code)
    return changed > 0
