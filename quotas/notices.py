"""Notices of a changed quota or limit: to the tenant's owners, and to its people with waiting requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor, visible_tenants
from accounts.models import Role, Tenant, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from quotas.models import Claim, Pool, Quota, TenantLimit

SUBJECT = "tenant"


class Limit(NamedTuple):
    """Display of a limit over all pools: name, unit, and how many stored units make one displayed unit."""

    what: Promise
    unit: str = ""
    size: int = 1


LIMITS = {
    "cpu_millicores": Limit(gettext_lazy("CPU"), size=1000),
    "memory_mib": Limit(gettext_lazy("Memory"), "GiB", 1024),
    "workspaces": Limit(gettext_lazy("Workspaces at once")),
    "storage_mib": Limit(gettext_lazy("Storage"), "GiB", 1024),
    "homes_mib": Limit(gettext_lazy("Homes"), "GiB", 1024),
    "disks_mib": Limit(gettext_lazy("Local disks"), "GiB", 1024),
    "datasets_mib": Limit(gettext_lazy("Datasets"), "GiB", 1024),
    "longest_runtime_minutes": Limit(gettext_lazy("Longest runtime"), "h", 60),
    "person_gpus": Limit(gettext_lazy("GPUs of one person")),
    "person_workspaces": Limit(gettext_lazy("Workspaces of one person at once")),
    "person_storage_mib": Limit(gettext_lazy("Storage of one person"), "GiB", 1024),
}


def share_changed(by: User, share: Quota | TenantLimit, changes: Mapping[str, Any]) -> None:
    """Notify all concerned, except the person who made the change. Call inside the change's transaction."""
    pool = share.pool if isinstance(share, Quota) else None
    data = _gpus(pool, changes) if pool else _limits(changes)
    if not data:
        return
    notify(
        Kind.QUOTA,
        [person for person in _concerned(share.tenant_id, pool) if person != by],
        subject=SUBJECT,
        subject_id=share.tenant_id,
        key=f"{SUBJECT} {uuid4()}",
        data=data,
    )


def _gpus(pool: Pool, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the GPUs of one pool before and after; None if unchanged."""
    before, after = (figure or 0 for figure in _change(changes, "nominal_gpus"))
    if before == after:
        return None
    return {"pool": pool.name, "before": before, "after": after}


def _limits(changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return changed limits over all pools as [before, after] (null: no limit); None if unchanged."""
    figures = {name: _change(changes, name) for name in LIMITS}
    changed = {name: list(change) for name, change in figures.items() if change[0] != change[1]}
    return {"limits": changed} if changed else None


def _change(changes: Mapping[str, Any], field: str) -> tuple[Any, Any]:
    return changes.get("before", {}).get(field), changes.get("after", {}).get(field)


def _concerned(tenant_id: UUID, pool: Pool | None) -> QuerySet[User]:
    waiting = Claim.objects.filter(tenant=tenant_id, state=Claim.State.WAITING)
    if pool is not None:
        waiting = waiting.filter(pool=pool)
    owns = Q(memberships__tenant=tenant_id, memberships__role=Role.OWNER)
    waits = Q(pk__in=waiting.values("user"), memberships__tenant=tenant_id)
    return User.objects.filter(owns | waits, is_active=True).distinct()


# --- Words


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    return words_of_tenants(user, notices, _words)


def words_of_tenants(
    user: User, notices: Sequence[Notice], words: Callable[[Mapping[str, Any], Tenant], Words]
) -> Mapping[UUID, Words]:
    """Return the words of notices whose tenant the person still sees; skip others."""
    seen = visible_tenants(Actor(user)).filter(pk__in={notice.subject_id for notice in notices})
    tenants = {tenant.pk: tenant for tenant in seen}
    return {
        notice.pk: words(notice.data, tenants[notice.subject_id])
        for notice in notices
        if notice.subject_id in tenants
    }


def _words(data: Mapping[str, Any], tenant: Tenant) -> Words:
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
        hint=_("Waiting requests are checked again automatically. Running workspaces are not affected."),
        path=reverse("workspaces"),
        action=_("View your quota"),
    )


def _limit_words(name: str, before: int | None, after: int | None) -> str:
    limit = LIMITS[name]
    words = {"what": limit.what, "before": _amount(limit, before), "after": _amount(limit, after)}
    if after is None:
        return _("%(what)s: no limit now.") % words
    if before is None:
        return _("%(what)s: %(after)s at most; there was no limit before.") % words
    return _("%(what)s: %(after)s at most, before %(before)s.") % words


def _amount(limit: Limit, value: int | None) -> str:
    return f"{(value or 0) / limit.size:g} {limit.unit}".strip()
