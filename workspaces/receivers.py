"""Receivers of signals from the rooms below: each changes rows or marks workspaces for a look."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from accounts.live import publish_to_all
from accounts.models import APIToken, User
from clusters.models import Cluster
from quotas.models import Quota, TenantLimit
from workloads.live import groups

from . import enqueue
from .classes import launching
from .models import Desired, Phase, Share, ShareRole, Workspace
from .runs import lifetime, schedule, sharing
from .state import jupyter


def on_reachability_changed(*, cluster: Cluster, **_: object) -> None:
    """Refresh the pages of the cluster's workspaces: their message changes."""
    rows = Workspace.objects.filter(pool__cluster=cluster, deleted_at__isnull=True)
    tenants = rows.values_list("tenant", flat=True).distinct().order_by()
    moving = rows.exclude(phase__in=(Phase.STOPPED, Phase.FAILED)).values_list("pk", flat=True)
    groups.announce_all("workspace", tenants, moving)


def on_cluster_saved(*, instance: Cluster, created: bool, **_: object) -> None:
    """Mark the cluster's workspaces that are to run: new settings may ask for other Services, or for none at rest."""
    if not created:
        marked = [Desired.RUNNING, *([Desired.STOPPED] if instance.frees_addresses else [])]
        rows = Workspace.objects.filter(pool__cluster=instance, desired__in=marked, ending="")
        enqueue.reconcile(rows.values_list("pk", flat=True))


def on_share_changed(*, instance: Quota | TenantLimit, **_: object) -> None:
    """Mark one workspace of the tenant per cluster: its reconcile applies the changed ceiling of the namespace."""
    running = Workspace.objects.filter(tenant=instance.tenant_id, desired=Desired.RUNNING, ending="")
    enqueue.reconcile(
        running.order_by("pool__cluster_id", "pk").distinct("pool__cluster_id").values_list("pk", flat=True)
    )


def on_networks_changed(*, cluster: Cluster, **_: object) -> None:
    """Mark one workspace of each tenant that runs there: its reconcile applies the tenant's network policy.

    One that is ready comes first, because nothing keeps its reconcile from the policy.
    """
    running = Workspace.objects.filter(pool__cluster=cluster, desired=Desired.RUNNING, ending="")
    first = running.order_by("tenant_id", F("ready_at").asc(nulls_last=True), "pk").distinct("tenant_id")
    enqueue.reconcile(first.values_list("pk", flat=True))


def on_tick(**_: object) -> None:
    lifetime.pass_due()
    end_handed_out()
    schedule.pass_due()
    launching.pass_due()


def on_signed_in(*, user: User, **_: object) -> None:
    launching.on_sign_in(user)


def on_ssh_keys_changed(*, users: set[User], **_: object) -> None:
    """Mark running workspaces of these people, and those that are shared with them to work: they get the new keys."""
    shared = Share.objects.filter(user__in=users, role=ShareRole.WORK).values("workspace")
    rows = Workspace.objects.filter(Q(owner__in=users) | Q(pk__in=shared), desired=Desired.RUNNING)
    enqueue.reconcile(rows.values_list("pk", flat=True))


def on_rights_changed(*, users: set[User], **_: object) -> None:
    """End shares that no longer hold. Replace Jupyter's token in these people's workspaces, and in those where they
    worked, and bring it and the SSH keys to the cluster."""
    lost = sharing.end_unfounded(users)
    rows = Workspace.objects.filter(Q(owner__in=users) | Q(pk__in=lost), desired=Desired.RUNNING)
    replace_token(rows, left=lost)
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
def replace_token(rows: QuerySet[Workspace], *, left: Collection[UUID] = ()) -> None:
    """Replace Jupyter's token in these workspaces, and bring it to the cluster: both or neither."""
    ids = list(rows.values_list("pk", flat=True))  # the replacement changes what `rows` finds
    enqueue.reconcile(ids)
    jupyter.replace(Workspace.objects.filter(pk__in=ids), left=left)


def on_access_changed(*, users: set[User], **_: object) -> None:
    """Make the open sockets of these people check again what they may show."""
    publish_to_all([f"user.{user.pk}" for user in users], {"type": "access.changed"})
