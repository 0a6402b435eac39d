"""Actions on all workspaces of a class: stop, extend; and the deletion of the class, whose workspaces stay."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.access import Actor, not_there, owned_tenants
from accounts.errors import Refusal
from accounts.trail import audit
from workspaces.models import ClassLaunch, Desired, Workspace
from workspaces.runs import lifecycle, lifetime

from .launching import alone, require

Refused = dict[UUID, Refusal]  # by workspace


def visible(actor: Actor) -> QuerySet[ClassLaunch]:
    """Class launches of the tenants that the actor owns."""
    rows = ClassLaunch.objects.filter(tenant__in=owned_tenants(actor))
    return rows.select_related("tenant", "template", "booking", "by")


def get(actor: Actor, class_id: UUID) -> ClassLaunch:
    """Return the class launch or raise NotThere."""
    row = visible(actor).filter(pk=class_id).first()
    if row is None:
        raise not_there()
    return row


def stop(actor: Actor, row: ClassLaunch) -> Refused:
    """Stop all that run or wait; files stay. Nothing more is launched until the class is launched again."""
    require(actor, row.tenant)
    with transaction.atomic():
        alone(row.tenant)  # a launch that is under way ends first, and is stopped too
        ClassLaunch.objects.filter(pk=row.pk, stopped_at=None).update(stopped_at=timezone.now())
        audit.record(actor, "class.stop", target=row, tenant=row.tenant)
    row.refresh_from_db(fields=["stopped_at"])
    return _each(row, lambda workspace: lifecycle.stop(actor, workspace))


def extend(actor: Actor, row: ClassLaunch, minutes: int | None = None) -> Refused:
    """Move the end of all that run, as `lifetime.extend` does."""
    require(actor, row.tenant)
    lifetime.refuse_too_long(minutes, "minutes")
    audit.record(actor, "class.extend", target=row, tenant=row.tenant, data={"minutes": minutes})
    return _each(row, lambda workspace: lifetime.extend(actor, workspace, minutes))


def delete(actor: Actor, row: ClassLaunch) -> None:
    """Forget the class. Its workspaces stay; a class of its name can be launched anew."""
    require(actor, row.tenant)
    with transaction.atomic():
        alone(row.tenant)
        audit.record(actor, "class.delete", target=row, tenant=row.tenant)
        row.delete()


def _each(row: ClassLaunch, act: Callable[[Workspace], object]) -> Refused:
    """Act on each workspace that is to run. Return the refusals: they do not keep the others from it."""
    refused: Refused = {}
    ids = row.seats.filter(workspace__desired=Desired.RUNNING).values("workspace")
    related = ("tenant", "owner", "image", "pool__cluster", "flavor")
    for workspace in Workspace.objects.filter(pk__in=ids).select_related(*related).order_by("pk"):
        try:
            act(workspace)
        except Refusal as refusal:
            refused[workspace.pk] = refusal
    return refused
