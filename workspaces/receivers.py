"""Receivers of signals from the rooms below: each changes rows or enqueues a reconcile."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from accounts.live import publish_to_all
from accounts.models import APIToken, User
from clusters import labels
from clusters.models import Cluster
from clusters.watch.watching import Changed
from quotas.models import Quota, TenantLimit

from . import enqueue
from .cluster.observe import TROUBLE_REASONS
from .models import Desired, Phase, Workspace
from .runs import lifetime
from .state import jupyter

# Kubernetes events carry no labels of ours; the name of their object contains the id.
OBJECT_NAME = re.compile(r"ws-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-|$)")


def on_objects_changed(*, changes: Sequence[Changed], **_: object) -> None:
    """Enqueue workspaces whose objects changed. Only events about troubles say more than the objects do."""
    changed, warned = set[UUID](), set[UUID]()
    for body in (step.body for step in changes):
        is_event = body.get("kind") == "Event"
        if is_event and body.get("reason") not in TROUBLE_REASONS:
            continue
        if (pk := workspace_of(body)) is not None:
            (warned if is_event else changed).add(pk)
    enqueue.reconcile(changed | warned, warned=warned)


def workspace_of(body: dict[str, Any]) -> UUID | None:
    """Return the workspace of an object by its label, or of an event by the name of its object."""
    labelled = body.get("metadata", {}).get("labels", {}).get(labels.WORKSPACE)
    if labelled:
        try:
            return UUID(labelled)
        except ValueError:
            return None
    found = OBJECT_NAME.match(body.get("involvedObject", {}).get("name", ""))
    return UUID(found[1]) if found else None


def on_relisted(*, cluster: Cluster, **_: object) -> None:
    """Enqueue, after a gap in the watch, the workspaces that are to run or whose run is ending."""
    live = Q(desired="running") | ~Q(ending="")
    rows = Workspace.objects.filter(live, pool__cluster=cluster, deleted_at__isnull=True)
    ids = list(rows.values_list("pk", flat=True))
    enqueue.reconcile(ids, warned=ids)  # troubles reported in the gap are unknown


def on_reachability_changed(*, cluster: Cluster, **_: object) -> None:
    """Refresh the pages of the cluster's workspaces: their message changes."""
    rows = Workspace.objects.filter(pool__cluster=cluster, deleted_at__isnull=True)
    tenants = rows.values_list("tenant", flat=True).distinct().order_by()
    moving = rows.exclude(phase__in=(Phase.STOPPED, Phase.FAILED)).values_list("pk", flat=True)
    groups = ["staff", *(f"tenant.{pk}" for pk in tenants), *(f"workspace.{pk}" for pk in moving)]
    publish_to_all(groups, {"type": "resync"})


def on_cluster_saved(*, instance: Cluster, created: bool, **_: object) -> None:
    """Enqueue the cluster's workspaces: new settings may ask for other Services."""
    if not created:
        on_relisted(cluster=instance)


def on_share_changed(*, instance: Quota | TenantLimit, **_: object) -> None:
    """Enqueue one workspace of the tenant per cluster: its reconcile applies the changed ceiling of the namespace."""
    running = Workspace.objects.filter(tenant=instance.tenant_id, desired=Desired.RUNNING, ending="")
    enqueue.reconcile(
        running.order_by("pool__cluster_id", "pk").distinct("pool__cluster_id").values_list("pk", flat=True)
    )


def on_networks_changed(*, cluster: Cluster, **_: object) -> None:
    """Enqueue one workspace of each tenant that runs there: its reconcile applies the tenant's network policy.

    One that is ready comes first, because nothing keeps its reconcile from the policy.
    """
    running = Workspace.objects.filter(pool__cluster=cluster, desired=Desired.RUNNING, ending="")
    first = running.order_by("tenant_id", F("ready_at").asc(nulls_last=True), "pk").distinct("tenant_id")
    enqueue.reconcile(first.values_list("pk", flat=True))


def on_tick(**_: object) -> None:
    enqueue.periodic_pass(int(time.time()) // enqueue.TICK_SECONDS)
    lifetime.pass_due()
    end_handed_out()


def on_ssh_keys_changed(*, users: set[User], **_: object) -> None:
    """Enqueue these people's running workspaces, which get the new keys."""
    rows = Workspace.objects.filter(owner__in=users, desired=Desired.RUNNING)
    enqueue.reconcile(rows.values_list("pk", flat=True))


def on_rights_changed(*, users: set[User], **_: object) -> None:
    """Replace Jupyter's token in these people's workspaces, and bring it and the SSH keys to the cluster."""
    on_ssh_keys_changed(users=users)
    jupyter.replace(Workspace.objects.filter(owner__in=users, desired=Desired.RUNNING))
    on_access_changed(users=users)


def on_token_revoked(*, token: APIToken, **_: object) -> None:
    """Replace Jupyter's token where it was handed out to this API token."""
    replace_token(Workspace.objects.filter(owner=token.user_id, secret__handed_to__contains=str(token.pk)))


def end_handed_out() -> None:
    """Replace Jupyter's token where an API token that it was handed to has ended, and close what it opened."""
    if ended := jupyter.handed_to_ended():
        with transaction.atomic():
            replace_token(Workspace.objects.filter(pk__in=[row.pk for row in ended]))
            publish_to_all(
                [f"user.{pk}" for pk in {row.owner_id for row in ended}], {"type": "access.changed"}
            )


@transaction.atomic
def replace_token(rows: QuerySet[Workspace]) -> None:
    """Replace Jupyter's token in these workspaces, and bring it to the cluster: both or neither."""
    ids = list(rows.values_list("pk", flat=True))  # the replacement changes what `rows` finds
    enqueue.reconcile(ids)
    jupyter.replace(Workspace.objects.filter(pk__in=ids))


def on_access_changed(*, users: set[User], **_: object) -> None:
    """Make the open sockets of these people check again what they may show."""
    publish_to_all([f"user.{user.pk}" for user in users], {"type": "access.changed"})
