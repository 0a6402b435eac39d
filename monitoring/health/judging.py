"""A node is judged: what is known of it is read, what is wrong is decided (`rules.py`) and written down.

Called whenever something that counts became another, in the caller's transaction; it may be called too often, late, or
by several at once. Who takes in a report holds `lock` from before its first row of that node on, and writes of one node
in a transaction only; so a report and a change of the node never wait for each other in a ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from monitoring import tasks
from monitoring.health.rules import (
    Observed,
    Out,
    Verdict,
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
# Errors from before were judged when they came, and troubles remember them.
LOOKS_BACK = timedelta(days=1)


def lock(cluster_id: UUID, node_name: str) -> None:
    one_at_a_time(f"monitoring.node {cluster_id} {node_name}")


@transaction.atomic
def judge(cluster_id: UUID, node_name: str, *, tells: bool = True) -> None:
    """`tells`: people hear of it, unless the caller sees to that for many nodes at once."""
    lock(cluster_id, node_name)
    now = timezone.now()
    seen = observe(cluster_id, node_name, now)
    note_changes(seen.gpus, now)
    found = verdicts(seen)
    is_changed = write(cluster_id, node_name, seen.standing, found, now)
    if take_out(seen, found):
        transaction.on_commit(partial(_tell_of_capacity, cluster_id), robust=True)
    if is_changed:
        publish(POOLS, {"type": "pools.changed"})
    if tells and (is_changed or seen.standing):  # who is on what may have changed
        tasks.enqueue_telling(cluster_id)


def _tell_of_capacity(cluster_id: UUID) -> None:
    for cluster in Cluster.objects.filter(pk=cluster_id):
        signals.capacity_changed.send_robust(sender=Cluster, cluster=cluster)


def observe(cluster_id: UUID, node_name: str, now: datetime) -> Observed:
    of_node = {"cluster": cluster_id, "node": node_name}
    troubles = Trouble.objects.filter(**of_node, about__in=OF_A_NODE)
    node = Node.objects.filter(cluster=cluster_id, name=node_name).first()
    boot = str(node.system.get("bootID", "")) if node else ""
    # What ended while its node ran on counts again if nothing settled it: the node was away, and is the same.
    ended = troubles.filter(ended_at__gt=now - LOOKS_BACK, data__has_key="xid").exclude(data__boot=boot)
    xids = XidEvent.objects.filter(**of_node, at__gt=now - LOOKS_BACK)
    ends = ended.order_by().values("subject", "code").annotate(at=Max("ended_at"))
    return Observed(
        name=node_name,
        now=now,
        node=node,
        agent=AgentState.objects.filter(**of_node).first(),
        gpus=list(Gpu.objects.filter(**of_node)),
        # The newest of each: what it does not say, none before it does, and there may be thousands.
        xids=list(xids.order_by("gpu", "xid", "-at").distinct("gpu", "xid")),
        failed_starts=list(FailedStart.objects.filter(**of_node)),
        standing=list(troubles.filter(ended_at=None)),
        settled={(row["subject"], row["code"]): row["at"] for row in ends},
        hears_since=heard_since("web"),
        failed_test_at=failed_test.ended_at if (failed_test := failed(cluster_id, node_name)) else None,
    )


def note_changes(gpus: Iterable[Gpu], now: datetime) -> None:
    """Since when each GPU is slowed: a moment of it is nothing to tell. And errors that were trusted and are gone."""
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
    """Open what is new, end what is over, take over what is known better. Whether one came or went."""
    wanted: Mapping[tuple[str, str, str], Verdict] = {verdict.key: verdict for verdict in found}
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
    """An error ends though its GPU's state has the same words: else nobody would know later that it is over."""
    return verdict is not None and ("xid" not in trouble.data or "xid" in verdict.data)


def take_out(seen: Observed, found: Iterable[Verdict]) -> bool:
    """What the queue keeps off. Whether that is another now."""
    found = list(found)
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
