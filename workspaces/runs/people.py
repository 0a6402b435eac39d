"""Workspaces of a tenant's people, for those who manage the tenant; and the removal of a person from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from accounts import members
from accounts.access import Actor, visible_tenants
from accounts.models import Membership, Tenant, User
from clusters.models import Cluster
from quotas import admission
from workspaces.models import Desired, Workspace

from . import lifecycle


@dataclass(frozen=True)
class Seat:
    """A person of a tenant, with their workspaces there."""

    user: User
    membership: Membership | None = None
    running: list[Workspace] = field(default_factory=list)
    stopped: list[Workspace] = field(default_factory=list)

    def add(self, row: Workspace) -> None:
        (self.running if row.desired == Desired.RUNNING else self.stopped).append(row)


def seats(tenant: Tenant, memberships: Sequence[Membership]) -> list[Seat]:
    """Seats of these members, in one query."""
    found = {membership.user_id: Seat(membership.user, membership) for membership in memberships}
    for row in _there(tenant).filter(owner__in=found).order_by("name"):
        found[row.owner_id].add(row)
    return list(found.values())


def inaccessible_workspaces(tenant: Tenant) -> list[Seat]:
    """People with workspaces that they can no longer reach: they were removed from the tenant, or deactivated."""
    inside = Membership.objects.filter(tenant=tenant, user__is_active=True)
    rows = (
        _there(tenant)
        .exclude(owner__in=inside.values("user"))
        .exclude(owner__is_staff=True, owner__is_active=True)
        .select_related("owner")
    )
    found: dict[UUID, Seat] = {}
    for row in rows.order_by("owner__username", "name"):
        found.setdefault(row.owner_id, Seat(row.owner)).add(row)
    return list(found.values())


def tenants_with_figures(actor: Actor) -> QuerySet[Tenant]:
    """Tenants that the actor may see, with `people`, `running` and the actor's own `role`."""
    members_of = Membership.objects.filter(tenant=OuterRef("pk"), user__is_active=True, user__service_of=None)
    running = Workspace.objects.filter(tenant=OuterRef("pk"), desired=Desired.RUNNING)
    return visible_tenants(actor).annotate(
        people=_count(members_of),
        running=_count(running),
        role=Subquery(members_of.filter(user=actor.user).values("role")[:1]),
    )


def remove_person(actor: Actor, tenant: Tenant, username: str, *, stop: bool) -> None:
    """Remove a person from the tenant; with `stop`, also stop what they run there. Both or neither."""
    with transaction.atomic():
        if stop:
            # Before the tenant, and before the workspaces, which the signal of the removal locks.
            admission.lock(*Cluster.objects.values_list("pk", flat=True))
        person = members.member(tenant, username).user
        members.remove(actor, tenant, username)
        # Query after the removal, so that a concurrent launch is found too.
        running = _there(tenant).filter(owner=person, desired=Desired.RUNNING).order_by("pk") if stop else ()
        for workspace in running:
            lifecycle.stop(actor, workspace)


def _count(rows: QuerySet[Membership] | QuerySet[Workspace]) -> Subquery:
    return Subquery(rows.order_by().values("tenant").annotate(count=Count("pk")).values("count"))


def _there(tenant: Tenant) -> QuerySet[Workspace]:
    rows = Workspace.objects.filter(~Q(desired=Desired.DELETED), tenant=tenant, deleted_at__isnull=True)
    return rows.select_related("pool")
