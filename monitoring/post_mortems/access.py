"""Rights to read and note: a record is read as its workspace or job is, and its log by those who may read that."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in, visible_tenants
from accounts.errors import NotAllowed, NotThere
from accounts.models import Role, Scope
from jobs.models import Job
from monitoring.models import PostMortem
from quotas.models import Claim
from workspaces.models import Workspace

RELATED = ("tenant", "owner", "cluster")
SCOPES = {Claim.Holder.WORKSPACE: Scope.WORKSPACES, Claim.Holder.JOB: Scope.JOBS}


def visible(actor: Actor) -> QuerySet[PostMortem]:
    """Records of the actor's tenants. Those of deleted workspaces and jobs are there for their owner and admins."""
    rows = PostMortem.objects.filter(tenant__in=visible_tenants(actor))
    if actor.is_admin:
        return rows
    its = {"pk": OuterRef("holder_id"), "deleted_at__isnull": False}
    is_gone = Exists(Workspace.objects.filter(**its)) | Exists(Job.objects.filter(**its))
    return rows.filter(Q(owner=actor.user) | ~is_gone)


def get(actor: Actor, record_id: UUID | str) -> PostMortem:
    """Return the record or raise NotThere."""
    record = visible(actor).select_related(*RELATED).filter(pk=record_id).first()
    if record is None:
        raise NotThere(
            "not_found", _("There is no such post-mortem."), _("Look in the list of post-mortems.")
        )
    return record


def reads_log(actor: Actor, record: PostMortem) -> bool:
    """Return True if the actor may read the log of the run: its owner, owners of the tenant, and admins."""
    role = role_in(actor, record.tenant)
    return role == Role.OWNER or (record.owner_id == actor.user.pk and role == Role.MEMBER)


def require_note(actor: Actor, record: PostMortem) -> None:
    actor.require(SCOPES[Claim.Holder(record.holder_kind)])
    if not reads_log(actor, record):
        raise NotAllowed(
            "not_yours",
            _("This run belongs to %(owner)s.") % {"owner": record.owner.get_username()},
            _("Ask them or an owner of the tenant."),
        )
