"""A look at what warms in a cluster: pods are made, judged and removed, as rows and the mirror say.

A look may run twice, late, or be killed anywhere. A pod's name follows from what it pulls where, so none is made twice;
a pod that no row asks for is found by its label and removed. None of them has anything to lose, so no end is proven.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.announcements.showing import maintenance
from clusters import labels
from clusters.causes.cause import Diagnosis
from clusters.errors import ClusterRefused
from clusters.explain import diagnose
from clusters.isolation.deciding import may_launch
from clusters.measures import parse_time
from clusters.mirror import Mirror, name_of
from clusters.models import Cluster
from clusters.pods.ends import terminal
from clusters.references import complete
from quotas.models import Booking
from quotas.namespaces import ensuring
from workloads.pods.status import container_status, has_image
from workloads.pods.troubles import CRASH_TROUBLES, IMAGE_TROUBLES
from workspaces.models import WarmImage

from . import manifests
from .deciding import AGAIN_AFTER, Pull, is_due_again, next_pulls
from .gathering import images_of, nodes_for

log = logging.getLogger(__name__)

BEFORE = timedelta(minutes=60)  # a booking begins
REFUSED_AFTER = timedelta(minutes=2)  # a registry may answer the next try
UNPLACED_AFTER = timedelta(seconds=30)
MOST_REPORTED = 50  # images that a kubelet reports: its largest
GONE_AFTER = timedelta(minutes=1)
DEADLINE = timedelta(seconds=manifests.DEADLINE_SECONDS)
HAS_IMAGE = {*CRASH_TROUBLES, "CreateContainerConfigError"}  # the container fails, but its image is there
REFUSED = {*IMAGE_TROUBLES, "InvalidImageName"}
NOTHING = Diagnosis("", {})
Object = Mapping[str, Any]


def look(cluster: Cluster, mirror: Mirror, instance: UUID) -> None:
    """Take what warms in the cluster one step on. Raise ClusterError if it does not answer."""
    now = timezone.now()
    if Cluster.objects.filter(pk=cluster.pk, unreachable_since__isnull=False).exists():
        return
    _rows(cluster).filter(Q(booking__ends_at__lte=now) | Q(booking__cancelled_at__isnull=False)).delete()
    open_ones = list(_rows(cluster).filter(ready_at=None, given_up_at=None))
    coming = list(_coming(cluster, now))
    there = _there(cluster, mirror, now) if open_ones or coming else set()
    for row in open_ones:
        judge(row, there, mirror, now)
    remove_pods(cluster, mirror)
    for booking in coming:
        if may_launch(booking.pool.cluster) and maintenance(now) is None:
            warm(booking, there, mirror, instance)


def _coming(cluster: Cluster, now: datetime) -> QuerySet[Booking]:
    """Bookings that begin soon, in pools that are in use."""
    soon = Booking.objects.filter(cancelled_at=None, starts_at__gt=now, starts_at__lte=now + BEFORE)
    rows = soon.filter(pool__cluster=cluster, pool__is_open=True).select_related("pool__cluster", "tenant")
    return rows.order_by("starts_at", "pk")


def _rows(cluster: Cluster) -> QuerySet[WarmImage]:
    rows = WarmImage.objects.filter(booking__pool__cluster=cluster)
    return rows.select_related("image", "booking__tenant", "booking__pool__cluster").order_by("pk")


def _there(cluster: Cluster, mirror: Mirror, now: datetime) -> set[Pull]:
    """Return the images that nodes have: as they report, and as pods showed, lately or where the report is full."""
    listed = {
        node["metadata"]["name"]: node.get("status", {}).get("images") or () for node in mirror.all("Node")
    }
    reported = {
        Pull(complete(name), node)
        for node, images in listed.items()
        for image in images
        for name in image.get("names") or ()
    }
    full = [node for node, images in listed.items() if len(images) >= MOST_REPORTED]
    shown = _rows(cluster).filter(
        Q(ready_at__gt=now - AGAIN_AFTER) | Q(ready_at__isnull=False, node__in=full)
    )
    return reported | {pull_of(row) for row in shown}


def pull_of(row: WarmImage) -> Pull:
    return Pull(complete(row.image.reference), row.node)


# --- What is under way


def judge(row: WarmImage, there: Collection[Pull], mirror: Mirror, now: datetime) -> None:
    """Write down that the image is there, or that it is given up."""
    pod = mirror.get("Pod", row.booking.tenant.namespace, manifests.name_of(row))
    if pull_of(row) in there or (pod is not None and has_pulled(pod)):
        _note(row, ready_at=now)
    elif row.pulled_since is not None:
        if pod is None:  # a mirror may be behind
            why = NOTHING if now - row.pulled_since > GONE_AFTER else None
        else:
            why = NOTHING if terminal(pod) else obstacle(pod, now)
        if why is not None:
            _note(row, given_up_at=now, code=why.code, data=dict(why.data))


def _note(row: WarmImage, **values: Any) -> None:
    WarmImage.objects.filter(pk=row.pk).update(**values)


def has_pulled(pod: Object) -> bool:
    """Return True if the node has the image. An image without the command fails to run: it was pulled all the same."""
    waiting = container_status(pod).get("state", {}).get("waiting") or {}
    return has_image(pod) or waiting.get("reason") in HAS_IMAGE


def obstacle(pod: Object, now: datetime) -> Diagnosis | None:
    """Return why a pull is given up, or None: it goes on."""
    since = parse_time(pod["metadata"].get("creationTimestamp"))
    lasts = now - since if since else timedelta(0)
    waiting = container_status(pod).get("state", {}).get("waiting") or {}
    if waiting.get("reason") in REFUSED and lasts > REFUSED_AFTER:
        return diagnose("image", f"{waiting['reason']}: {waiting.get('message', '')}")
    if not pod["spec"].get("nodeName") and lasts > UNPLACED_AFTER:
        return NOTHING  # its node is full or closed
    return NOTHING if lasts > DEADLINE else None


def remove_pods(cluster: Cluster, mirror: Mirror) -> None:
    """Remove the pods that no row waits for, whoever left them."""
    wanted = {
        (row.booking.tenant.namespace, manifests.name_of(row))
        for row in _rows(cluster).filter(ready_at=None, given_up_at=None)
    }
    for pod in mirror.all("Pod"):
        metadata = pod["metadata"]
        is_ours = labels.WARMS in (metadata.get("labels") or {})
        if is_ours and name_of(pod) not in wanted and not metadata.get("deletionTimestamp"):
            mirror.delete("Pod", *name_of(pod), uid=metadata["uid"])


# --- What comes next


def warm(booking: Booking, there: Collection[Pull], mirror: Mirror, instance: UUID) -> None:
    """Let the next nodes pull what they lack."""
    nodes = nodes_for(booking)
    references = plan(booking, nodes, there)
    rows = list(_rows(booking.pool.cluster))
    own = {pull_of(row): row for row in rows if row.booking_id == booking.pk}
    pulled = [row for row in rows if row.is_under_way]
    chosen = next_pulls(
        references,
        nodes,
        there=there,
        ready={pull for pull, row in own.items() if row.ready_at},
        under_way={pull_of(row) for row in pulled},
        given_up={pull: row.code for pull, row in own.items() if row.given_up_at},
        in_pool=sum(row.booking.pool_id == booking.pool_id for row in pulled),
    )
    make([own[pull] for pull in chosen if pull in own], mirror, instance)


def plan(booking: Booking, nodes: Collection[str], there: Collection[Pull]) -> list[str]:
    """Make the booking's rows what it wants now; what is under way ends by itself. Return its images' references.

    The likeliest comes first.
    """
    now = timezone.now()
    with transaction.atomic():
        images = images_of(booking)
        wanted = {
            (image.pk, node): WarmImage(booking=booking, image=image, node=node)
            for image in images
            for node in nodes
        }
        for row in WarmImage.objects.filter(booking=booking).select_related("image"):
            if wanted.pop((row.image_id, row.node), None) is None and not row.is_under_way:
                row.delete()
            elif is_due_again(
                ready_at=row.ready_at, given_up_at=row.given_up_at, is_there=pull_of(row) in there, now=now
            ):  # its reason is shown until it is there
                _note(row, pulled_since=None, ready_at=None, given_up_at=None)
        for row in wanted.values():
            row.ready_at = now if pull_of(row) in there else None
        WarmImage.objects.bulk_create(wanted.values(), ignore_conflicts=True)
    return [complete(image.reference) for image in images]


def make(rows: Collection[WarmImage], mirror: Mirror, instance: UUID) -> None:
    """Create the pods, behind the fences of their tenant's namespace."""
    for row in rows:
        tenant, cluster = row.booking.tenant, row.booking.pool.cluster
        try:
            ensuring.ensure(ensuring.wanted_objects(tenant, cluster, instance), instance, mirror)
            mirror.create(manifests.pod(row, instance))
        except ensuring.NoNamespace as blocked:
            log.info("nothing is warmed in %s: %s", blocked.namespace, blocked.code)
            return
        except ClusterRefused as refused:
            if refused.status != 409:  # a pod that an earlier look made
                why = diagnose("admission", refused.message)
                _note(row, given_up_at=timezone.now(), code=why.code, data=dict(why.data))
                continue
        _note(row, pulled_since=timezone.now())
