"""Group runs that ended badly in the same way: on one node, on one GPU, or with one image and one verdict. `alike` is
pure.

A group says that the cause is likely not one person's program. So what a program does to itself counts less there: a
job that fails by its own exit code and is tried again makes no group of its node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from accounts.access import Actor
from monitoring.alerts.firing import Firing, key_of
from monitoring.alerts.troubles import pools_of_nodes
from monitoring.models import PostMortem, Severity
from workloads import images

from . import access

WITHIN = timedelta(days=2)
# Runs that make a group: fewer of those that their program cannot be blamed for.
FEWEST, FEWEST_OF_PROGRAMS, FEWEST_HOLDERS = 3, 5, 3
MOST_READ = 5000
MOST_SHOWN = 20
# Verdicts for which a program is to blame, or its size.
OF_PROGRAMS = frozenset(
    {
        "program_exit", "program_signal", "out_of_memory", "child_out_of_memory", "ran_too_long", "exit_code_is_final",
        "temporary_disk_full", "gpu_out_of_memory", "gpu_program_fault", "shared_memory_full", "volume_full",
        "too_many_processes", "server_not_reached", "start_program_missing", "image_user_unfit", "gpu_software_unfit",
        "pod_deleted", "namespace_deleted",
    }
)  # fmt: skip


class Ended(NamedTuple):
    """Run that ended badly, as far as groups are concerned."""

    run: UUID
    holder: UUID
    cluster_id: UUID | None
    node: str
    gpus: tuple[str, ...]
    image: str
    verdict: str
    at: datetime


class Group(NamedTuple):
    """Runs that are alike. `code` and `data` make its sentence (words.py); `key` stays the same while it lasts."""

    key: str
    code: str
    data: dict[str, Any]
    since: datetime
    cluster_id: UUID | None
    node: str
    runs: tuple[UUID, ...]


def alike(records: Iterable[Ended], now: datetime) -> list[Group]:
    """Return the groups of the last two days, the largest first. Pure."""
    recent = [one for one in records if now - one.at <= WITHIN]
    by_gpu, by_node, by_image = (defaultdict[Any, list[Ended]](list) for _ in range(3))
    for one in recent:
        for gpu in one.gpus:
            by_gpu[one.cluster_id, gpu].append(one)
        if one.node:
            by_node[one.cluster_id, one.node].append(one)
        if one.image and one.verdict:
            by_image[one.image, one.verdict].append(one)
    found = [
        _group(f"gpu {cluster} {gpu}", "alike_gpu", those, {"gpu": gpu})
        for (cluster, gpu), those in by_gpu.items()
        if is_group(those)
    ]
    of_gpus = {run for group in found for run in group.runs}
    found += [
        _group(f"node {cluster} {node}", "alike_node", those, {})
        for (cluster, node), those in by_node.items()
        if is_group(those) and not {one.run for one in those} <= of_gpus
    ]
    found += [
        _group(
            f"image {image} {verdict}", "alike_image", those, {"image": image, "verdict": verdict}, node=""
        )
        for (image, verdict), those in by_image.items()
        if len({one.holder for one in those}) >= FEWEST_HOLDERS
    ]
    return sorted(found, key=lambda group: (-len(group.runs), group.key))


def is_group(those: Sequence[Ended]) -> bool:
    """Return True if so many runs ended badly at one place that the place is to blame. Pure."""
    if len([one for one in those if one.verdict not in OF_PROGRAMS]) >= FEWEST:
        return True
    return len(those) >= FEWEST_OF_PROGRAMS and len({one.holder for one in those}) >= FEWEST_HOLDERS


def _group(
    key: str, code: str, those: Sequence[Ended], data: dict[str, Any], *, node: str | None = None
) -> Group:
    in_order = sorted(those, key=lambda one: one.at)
    nodes = {one.node for one in those}
    where = (nodes.pop() if len(nodes) == 1 else "") if node is None else node
    told = {"count": len(those), "days": WITHIN.days, "node": where, **data}
    runs = tuple(one.run for one in in_order)
    return Group(key, code, told, in_order[0].at, in_order[0].cluster_id, where, runs)


# --- reading


def firings(now: datetime | None = None) -> list[Firing]:
    """Return the groups of all runs of the last two days, whoever they belong to, as alerts for admins."""
    minute = (now or timezone.now()).replace(second=0, microsecond=0)
    found = _of_everyone(minute, *_figures(minute))
    places = {(group.cluster_id, group.node) for group in found if group.cluster_id and group.node}
    pools = pools_of_nodes(places)
    return [
        _firing(group, pools.get((group.cluster_id, group.node), ()) if group.cluster_id else ())
        for group in found
    ]


def _figures(minute: datetime) -> list[Any]:
    """Return what changes as soon as records do."""
    figures = PostMortem.objects.filter(ended_at__gt=minute - WITHIN).aggregate(
        rows=Count("pk"),
        on_clusters=Count("cluster"),
        gathered=Count("gathered_at"),
        ended_at=Max("ended_at"),
        gathered_at=Max("gathered_at"),
    )
    return list(figures.values())


@lru_cache(maxsize=1)
def _of_everyone(minute: datetime, *_figures: Any) -> tuple[Group, ...]:
    """Return the groups of all runs. They are kept for as long as the minute and the figures of the records stay.

    Passes over alerts ask every few seconds, in several processes: these have to find the same.
    """
    return tuple(alike(_read(PostMortem.objects.all(), minute), minute))


def _firing(group: Group, pools: Sequence[UUID]) -> Firing:
    names = ("node", "verdict")
    query = urlencode(
        {"show": "everyone", **{name: group.data[name] for name in names if group.data.get(name)}}
    )
    return Firing(
        key=key_of(group.key),
        code=group.code,
        data=group.data,
        severity=Severity.WARNING,
        since=group.since,
        cluster_id=group.cluster_id,
        node=group.node,
        pool_ids=tuple(pools),
        name=group.data.get("gpu") or group.data.get("image", ""),
        link=f"{reverse('post-mortems')}?{query}",
        apart=key_of(group.key),
    )


def seen_by(actor: Actor, now: datetime | None = None) -> list[Group]:
    """Return the groups of those runs that the actor may see."""
    now = now or timezone.now()
    return alike(_read(access.visible(actor), now), now)


def _read(rows: QuerySet[PostMortem], now: datetime) -> list[Ended]:
    """Return the runs whose records are complete: until then a verdict may change, and a group with it."""
    columns = ("id", "holder_id", "cluster_id", "node", "gpus", "image", "verdict", "code", "ended_at")
    recent = rows.filter(ended_at__gt=now - WITHIN, due_at=None).order_by("-ended_at")
    return [
        Ended(pk, holder, cluster, node, tuple(gpus), images.shown(image), verdict or code, at)
        for pk, holder, cluster, node, gpus, image, verdict, code, at in recent.values_list(*columns)[
            :MOST_READ
        ]
    ]


def like(actor: Actor, record: PostMortem) -> list[tuple[PostMortem, list[str]]]:
    """Return runs that the actor may see, of two days around the record's, with what they share with it."""
    same = Q(holder_id=record.holder_id)
    if record.node:
        same |= Q(cluster=record.cluster_id, node=record.node)
    for gpu in record.gpus:
        same |= Q(cluster=record.cluster_id, gpus__contains=[gpu])
    if record.image and record.verdict:
        same |= Q(image=record.image, verdict=record.verdict)
    times = (record.ended_at - WITHIN, record.ended_at + WITHIN)
    rows = access.visible(actor).filter(same, ended_at__range=times).exclude(pk=record.pk)
    newest = rows.select_related(*access.RELATED).order_by("-ended_at", "-pk")[:MOST_SHOWN]
    return [(one, shared(record, one)) for one in newest]


def shared(one: PostMortem, other: PostMortem) -> list[str]:
    """Name what two runs have in common. Pure."""
    is_same = {
        "holder": one.holder_id == other.holder_id,
        "gpu": one.cluster_id == other.cluster_id and not set(one.gpus).isdisjoint(other.gpus),
        "node": bool(one.node) and (one.cluster_id, one.node) == (other.cluster_id, other.node),
        "verdict": bool(one.verdict) and one.verdict == other.verdict,
    }
    return [name for name, is_so in is_same.items() if is_so]
