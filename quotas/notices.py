"""Who hears that a tenant may use more or less: its owners, and whoever waits in it.

The trail of changes is listened to: whichever page or program changed a quota has written there what it was before and
after, in the transaction of the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor, visible_tenants
from accounts.models import AuditEntry, Role, Tenant, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.telling import tell
from accounts.notices.words import Words
from quotas.models import Claim, Quota

SUBJECT = "tenant"
OF_POOL = ("quota.add", "quota.change")
OF_TENANT = ("tenantlimit.add", "tenantlimit.change")


class Limit(NamedTuple):
    """A limit over all pools as people say it: what, in which unit, and how many of ours are one of it."""

    what: Promise
    unit: str = ""
    size: int = 1


LIMITS = {
    "cpu_millicores": Limit(gettext_lazy("CPU"), size=1000),
    "memory_mib": Limit(gettext_lazy("Memory"), "GiB", 1024),
    "workspaces": Limit(gettext_lazy("Workspaces at once")),
}


def on_trail(*, instance: AuditEntry, created: bool, **_: object) -> None:
    """A line of the trail was written: tell whom it concerns, but for whoever made the change."""
    if not created or instance.tenant_id is None or instance.outcome != AuditEntry.Outcome.DONE:
        return
    if instance.action in OF_POOL:
        data = _of_pool(instance)
    elif instance.action in OF_TENANT:
        data = _of_tenant(instance)
    else:
        return
    if data:
        concerned = _concerned(instance.tenant_id, data.get("pool_id"))
        people = [person for person in concerned if person.pk != instance.actor_id]
        tell(
            Kind.QUOTA,
            people,
            subject=SUBJECT,
            subject_id=instance.tenant_id,
            key=f"{instance.action} {instance.pk}",
            data=data,
        )


def _of_pool(entry: AuditEntry) -> dict[str, Any] | None:
    """GPUs of one pool, if their number is another now."""
    before, after = _change(entry, "nominal_gpus")
    quota = Quota.objects.select_related("pool").filter(pk=entry.target_id).first()
    if quota is None or (before or 0) == (after or 0):
        return None
    pool = quota.pool
    return {"pool_id": str(pool.pk), "pool": pool.name, "before": before or 0, "after": after or 0}


def _of_tenant(entry: AuditEntry) -> dict[str, Any] | None:
    """The limits over all pools that are others now; null: no limit."""
    changes = {name: _change(entry, name) for name in LIMITS}
    told = {name: list(change) for name, change in changes.items() if change[0] != change[1]}
    return {"limits": told} if told else None


def _change(entry: AuditEntry, field: str) -> tuple[Any, Any]:
    return entry.data.get("before", {}).get(field), entry.data.get("after", {}).get(field)


def _concerned(tenant_id: UUID, pool_id: str | None) -> QuerySet[User]:
    waiting = Claim.objects.filter(tenant=tenant_id, state=Claim.State.WAITING)
    if pool_id is not None:
        waiting = waiting.filter(pool=UUID(pool_id))
    owns = Q(memberships__tenant=tenant_id, memberships__role=Role.OWNER)
    waits = Q(pk__in=waiting.values("user"), memberships__tenant=tenant_id)
    return User.objects.filter(owns | waits, is_active=True).distinct()


# --- Words


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """For the tenants that the person is still in."""
    seen = visible_tenants(Actor(user)).filter(pk__in={notice.subject_id for notice in notices})
    tenants = {tenant.pk: tenant for tenant in seen}
    return {
        notice.pk: _words(notice, tenants[notice.subject_id])
        for notice in notices
        if notice.subject_id in tenants
    }


def _words(notice: Notice, tenant: Tenant) -> Words:
    data = notice.data
    if "limits" in data:
        title = _("The limits of %(tenant)s were changed") % {"tenant": tenant.name}
        text = " ".join(_limit_words(name, *change) for name, change in data["limits"].items())
    else:
        words = {"tenant": tenant.name, **data}
        title = ngettext(
            "%(tenant)s may now use %(after)s GPU of %(pool)s",
            "%(tenant)s may now use %(after)s GPUs of %(pool)s",
            data["after"],
        )
        title %= words
        text = _("An admin changed it: it was %(before)s before.") % words
    return Words(
        title=title,
        text=text,
        hint=_("What waits is looked at again by itself; what runs goes on."),
        path=reverse("workspaces"),
        action=_("Look at your share"),
    )


def _limit_words(name: str, before: int | None, after: int | None) -> str:
    limit = LIMITS[name]
    words = {"what": limit.what, "before": _amount(limit, before), "after": _amount(limit, after)}
    if after is None:
        return _("%(what)s: no limit any more.") % words
    if before is None:
        return _("%(what)s: %(after)s at most; there was no limit before.") % words
    return _("%(what)s: %(after)s at most, before %(before)s.") % words


def _amount(limit: Limit, value: int | None) -> str:
    return f"{(value or 0) / limit.size:g} {limit.unit}".strip()
