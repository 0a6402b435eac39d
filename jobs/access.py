"""Access rules for jobs, the same as for workspaces. A job that the actor may not see does not exist for them."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in, visible_tenants
from accounts.errors import NotAllowed, NotThere
from accounts.models import Role, Scope, Tenant

from .models import Job

RELATED = ("tenant", "owner", "image", "pool__cluster", "flavor", "writes", "version")


def visible(actor: Actor) -> QuerySet[Job]:
    return Job.objects.filter(tenant__in=visible_tenants(actor))


def get(actor: Actor, job_id: UUID | str) -> Job:
    """Return the job or raise NotThere: deleted ones are there for their owner alone."""
    return require_there(actor, visible(actor).select_related(*RELATED).filter(pk=job_id).first())


def require_there(actor: Actor, job: Job | None) -> Job:
    """Return the job. Raise NotThere if it is None, or deleted and not the actor's own."""
    if job is None or (job.deleted_at and not is_own(actor, job)):
        raise NotThere("not_found", _("There is no such job."), _("Look in the list of jobs."))
    return job


def is_own(actor: Actor, job: Job) -> bool:
    return job.owner_id == actor.user.pk


def may_submit(actor: Actor, tenant: Tenant, *, hold: bool = False) -> bool:
    """Return True for members and owners. `hold`: they stay so until the transaction ends."""
    return role_in(actor, tenant, hold=hold) in (Role.OWNER, Role.MEMBER)


def require_submit(actor: Actor, tenant: Tenant, *, hold: bool = False) -> None:
    actor.require(Scope.JOBS)
    if not may_submit(actor, tenant, hold=hold):
        raise NotAllowed(
            "viewer_only_looks",
            _("You may look at this tenant's jobs, not start any."),
            _("Ask an owner of the tenant to make you a member."),
        )


def require_own(actor: Actor, job: Job) -> None:
    require_submit(actor, job.tenant)
    if not is_own(actor, job):
        raise NotAllowed(
            "not_yours",
            _("Only %(owner)s can do this with this job.") % {"owner": job.owner.get_username()},
            _("Start one of your own with the same settings."),
        )


def may_manage(actor: Actor, job: Job) -> bool:
    """Return True if the actor may cancel and delete the job and read its output."""
    role = role_in(actor, job.tenant)
    return role == Role.OWNER or (is_own(actor, job) and role == Role.MEMBER)


def require_manage(actor: Actor, job: Job) -> None:
    actor.require(Scope.JOBS)
    require_output(actor, job)


def require_output(actor: Actor, job: Job) -> None:
    """Refuse actors that may not manage the job. A read-only token is enough here."""
    if not may_manage(actor, job):
        raise NotAllowed(
            "not_yours",
            _("This job belongs to %(owner)s.") % {"owner": job.owner.get_username()},
            _("Ask them or an owner of the tenant."),
        )
