"""Publish the dataset that a job wrote, in the transaction that ends its last part."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Invalid, NotAllowed, Refusal
from accounts.models import Tenant
from jobs.changing import add_event
from jobs.models import Job, PartPhase
from storage import access, copies
from storage.models import Kind, Phase, Volume
from storage.sources import refuse_uncopied

from . import parts


def check(actor: Actor, tenant: Tenant, volume_id: UUID) -> Volume:
    """Return the dataset that a new job is to write. Raise Invalid or NotAllowed if it could not publish it."""
    volume = access.visible(actor).select_related(*access.RELATED).filter(pk=volume_id, tenant=tenant).first()
    if volume is None:
        raise _invalid(_("There is no volume %(id)s in this tenant.") % {"id": volume_id})
    if volume.kind != Kind.DATASET:
        raise _invalid(
            _("“%(volume)s” is no dataset: only datasets have versions.") % {"volume": volume.name}
        )
    if not access.may_manage(actor, volume):
        text = _("You may not publish “%(volume)s”: it belongs to %(owner)s.")
        data = {"volume": volume.name, "owner": volume.owner.get_username()}
        raise NotAllowed("not_yours", text % data, _("Write to a dataset of your own."))
    if volume.bound_to:  # else the job's own first run binds it
        refuse_uncopied(volume)
    return volume


def candidates(actor: Actor, tenants: Iterable[Tenant]) -> QuerySet[Volume]:
    """Datasets that a new job of the actor in one of these tenants may write, by name."""
    theirs = access.manageable(actor, tenants).filter(kind=Kind.DATASET, bin_until=None)
    return theirs.exclude(phase__in=(Phase.FAILED, Phase.DELETING)).order_by("name", "pk")


def _invalid(text: str) -> Invalid:
    return Invalid("invalid", text, _("See your volumes under Storage."), fields={"writes": [text]})


def publish(job: Job) -> None:
    """Publish the dataset once all parts have succeeded, or note why that is refused.

    Inside `changing`, under the cluster's lock. The claim of the last part is released, and no pass has run since, so
    that nobody else wrote to the dataset. The copy is taken when its node has let go of it.
    """
    if job.writes is None or job.version_id or job.parts.exclude(phase=PartPhase.SUCCEEDED).exists():
        return
    note = f"job “{job.name}”"
    try:
        job.version = copies.publish(Actor(job.owner), job.writes, note, is_after_run=True)
    except Refusal as refusal:
        parts.fail(job, "not_published", {"volume": job.writes.name, "reason": refusal.message})
    else:
        add_event(job, "publishes", volume=job.writes.name, number=job.version.number)
