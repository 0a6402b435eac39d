"""What the rooms below tell: each is turned into a change of the row or a mark to look again."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from accounts.live import publish_to_all
from accounts.models import User
from clusters import labels
from clusters.models import Cluster
from clusters.watching import Changed
from quotas.models import Quota, TenantLimit

from . import lifetime, storage, tasks
from .models import Desired, Phase, Workspace
from .observe import tells_trouble

# Events carry no labels of ours; the name of what they are about carries the id.
OBJECT_NAME = re.compile(r"ws-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-|$)")


def on_objects_changed(*, changes: Sequence[Changed], **_: object) -> None:
    """Something of workspaces changed in the cluster. Of events only those of troubles say more than the objects do."""
    events, others = [], []
    for body in (step.body for step in changes):
        if body.get("kind") != "Event":
            others.append(body)
        elif tells_trouble(body):
            events.append(body)
    warned = {pk for body in events if (pk := workspace_of(body)) is not None}
    tasks.mark(warned.union(pk for body in others if (pk := workspace_of(body)) is not None), warned=warned)


def workspace_of(body: dict[str, Any]) -> UUID | None:
    """By label, or for an event by the name of what it is about."""
    labelled = body.get("metadata", {}).get("labels", {}).get(labels.WORKSPACE)
    if labelled:
        try:
            return UUID(labelled)
        except ValueError:
            return None
    found = OBJECT_NAME.match(body.get("involvedObject", {}).get("name", ""))
    return UUID(found[1]) if found else None


def on_relisted(*, cluster: Cluster, **_: object) -> None:
    """After a gap in the watch: whoever has, or had better not have, objects in the cluster."""
    live = Q(desired="running") | ~Q(ending="")
    rows = Workspace.objects.filter(live, pool__cluster=cluster, deleted_at__isnull=True)
    ids = list(rows.values_list("pk", flat=True))
    tasks.mark(ids, warned=ids)  # what the cluster told in the gap is not known


def on_reachability_changed(*, cluster: Cluster, **_: object) -> None:
    """What the pages of its workspaces say is another now."""
    rows = Workspace.objects.filter(pool__cluster=cluster, deleted_at__isnull=True)
    tenants = rows.values_list("tenant", flat=True).distinct().order_by()
    moving = rows.exclude(phase__in=(Phase.STOPPED, Phase.FAILED)).values_list("pk", flat=True)
    groups = ["staff", *(f"tenant.{pk}" for pk in tenants), *(f"workspace.{pk}" for pk in moving)]
    publish_to_all(groups, {"type": "resync"})


def on_cluster_saved(*, instance: Cluster, created: bool, **_: object) -> None:
    """An admin changed its settings: what runs there gets the Services that they ask for now."""
    if not created:
        on_relisted(cluster=instance)


def on_share_changed(*, instance: Quota | TenantLimit, **_: object) -> None:
    """The backstop in each cluster is made anew with the next look at any workspace of the tenant there."""
    running = Workspace.objects.filter(tenant=instance.tenant_id, desired=Desired.RUNNING, ending="")
    tasks.mark(
        running.order_by("pool__cluster_id", "pk").distinct("pool__cluster_id").values_list("pk", flat=True)
    )


def on_tick(**_: object) -> None:
    tasks.periodic_pass(int(time.time()) // tasks.TICK_SECONDS)
    lifetime.pass_due()


def on_name_holders(*, holders: set[UUID], **_: object) -> dict[UUID, str]:
    return dict(Workspace.objects.filter(pk__in=holders).values_list("pk", "name"))


def on_ask_storage(*, tenants: set[UUID], **_: object) -> dict[UUID, int]:
    return storage.promised_mib(tenants)


def on_ssh_keys_changed(*, users: set[User], **_: object) -> None:
    """Running workspaces get these people's new keys."""
    rows = Workspace.objects.filter(owner__in=users, desired=Desired.RUNNING)
    tasks.mark(rows.values_list("pk", flat=True))


def on_access_changed(*, users: set[User], **_: object) -> None:
    """What these people have open asks anew what it may show."""
    publish_to_all([f"user.{user.pk}" for user in users], {"type": "access.changed"})
