"""Base of admin pages that change a quota, limit or budget: they enqueue passes, and lowering asks first.

A share below its use stops nothing by itself. To surprise nobody, the save is tried in a transaction. If it leaves
somebody over their share, it is rolled back, and a page shows who and by how much before the admin confirms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import messages
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import floatformat
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.admin.meters import meter
from accounts.admin.recorded import RecordedPage
from clusters.models import Cluster
from quotas import admission, notices, passes
from quotas.allowed import overuse
from quotas.allowed.overuse import Overuse
from quotas.allowed.storage import LIMITS as STORAGE_LIMITS
from quotas.models import Budget, Pool, Quota, TenantLimit
from quotas.pools.nodes import whole_nodes
from quotas.scheduling import as_gpus

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

M = TypeVar("M", bound=Model)

SHARE_MODELS = ("quota", "tenantlimit")  # models that define a tenant's share
SHARES = {
    "gpu_hours", "nominal_gpus", "borrowing_limit_gpus", "cpu_millicores", "memory_mib", "workspaces",
    "longest_runtime_minutes", "person_gpus", "person_workspaces", *STORAGE_LIMITS,
}  # fmt: skip
CONFIRMED = "lowering_seen"


class ConfirmsLowering(RecordedPage[M]):
    lowering_means: StrOrPromise = gettext_lazy(
        "This stops nothing: running workspaces are not affected. Nothing new starts until enough of them "
        "have ended. The quota page shows who is over the limit. Stop workspaces if you need the GPUs "
        "sooner."
    )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asking_first(request, partial(super().changeform_view, request, *args, **kwargs))

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asking_first(request, partial(super().changelist_view, request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asking_first(request, partial(super().delete_view, request, *args, **kwargs))

    def record(self, request: HttpRequest, obj: Model, verb: str, changes: dict[str, Any]) -> None:
        super().record(request, obj, verb, changes)
        if verb == "delete" or is_lowered(changes):
            found = would_be_over(obj, is_gone=verb == "delete")
            lowered: list[Overuse] = getattr(request, "lowered", [])
            request.lowered = [*lowered, *([found] if found else [])]  # type: ignore[attr-defined]
        if isinstance(obj, Quota) and verb != "delete" and (warning := beyond_the_pool(obj)):
            self.message_user(request, warning, messages.WARNING)

    def write_down(self, actor: Actor, obj: Model, verb: str, changes: dict[str, Any]) -> None:
        super().write_down(actor, obj, verb, changes)
        if isinstance(obj, Quota | TenantLimit) and verb != "delete":
            notices.share_changed(actor.user, obj, changes)

    def after_change(self, actor: Actor, obj: Model) -> None:
        passes.want_everywhere()

    def _asking_first(self, request: HttpRequest, save: Callable[[], Any]) -> Any:
        if request.method != "POST":
            return save()
        with transaction.atomic():
            # No pass uses the old value, and a second admin waits: rows in another order cannot deadlock.
            admission.lock(*Cluster.objects.values_list("pk", flat=True))
            response = save()
            lowered: list[Overuse] = getattr(request, "lowered", [])
            asks = sorted(map(digest, lowered)) != sorted(request.POST.getlist(CONFIRMED)) and bool(lowered)
            if asks:
                transaction.set_rollback(True)
        return self._ask(request, lowered) if asks else response

    def _ask(self, request: HttpRequest, lowered: list[Overuse]) -> HttpResponse:
        return self.page_after_rollback(
            request,
            "admin/lowering.html",
            CONFIRMED,
            title=_("Lower below what is in use"),
            means=self.lowering_means,
            lowered=lowered,
            seen=[(CONFIRMED, digest(found)) for found in lowered],
            has_changed=CONFIRMED in request.POST,
        )

    def page_after_rollback(
        self, request: HttpRequest, template: str, button: str, **context: Any
    ) -> HttpResponse:
        """Return a page whose form posts again what was entered, without the field of this name."""
        list(messages.get_messages(request))  # discard: they are about the save that was rolled back
        left_out = (button, "csrfmiddlewaretoken")
        posted = [(name, values) for name, values in request.POST.lists() if name not in left_out]
        entered = [(name, value) for name, values in posted for value in values]
        common = {**self.admin_site.each_context(request), "opts": self.opts, "messages": ()}
        return TemplateResponse(request, template, {**common, "entered": entered, **context})


def gpus_meter(pool: Pool, units: int, most: int) -> SafeString:
    """Meter of the units in use, labelled in GPUs."""
    used, limit = (floatformat(as_gpus(amount, pool.units_per_gpu), "-2") for amount in (units, most))
    return meter(units, most, _("%(used)s of %(limit)s") % {"used": used, "limit": limit})


def share_meter(quota: Quota, units: int) -> SafeString:
    """Meter of a tenant's own GPUs, what it borrows, and its limit with borrowing."""
    pool, per_gpu = quota.pool, quota.pool.units_per_gpu
    own, limit = quota.nominal_gpus * per_gpu, quota.limit_gpus * per_gpu
    if own == limit:
        return gpus_meter(pool, units, limit)
    said = {"used": units, "limit": limit, "borrowed": max(0, units - own)}
    gpus = {name: floatformat(as_gpus(amount, per_gpu), "-2") for name, amount in said.items()}
    words = (
        _("%(used)s of %(limit)s, %(borrowed)s borrowed") if said["borrowed"] else _("%(used)s of %(limit)s")
    )
    return meter(units, limit, words % gpus, own=own)


def is_lowered(changes: dict[str, Any]) -> bool:
    """Return True if a share became smaller; None is unlimited."""
    before, after = changes.get("before", {}), changes.get("after", {})
    return any(
        after[name] is not None and (before[name] is None or Decimal(after[name]) < Decimal(before[name]))
        for name in SHARES & before.keys() & after.keys()
    )


def would_be_over(obj: Model, *, is_gone: bool) -> Overuse | None:
    if isinstance(obj, Quota) and obj.pool.has_gpus:
        return overuse.of_quota(obj, is_gone=is_gone)
    if isinstance(obj, TenantLimit) and not is_gone:  # deleting a limit leaves nobody over it
        return overuse.of_limit(obj)
    if isinstance(obj, Budget) and not is_gone:
        return overuse.of_budget(obj)
    return None


def beyond_the_pool(quota: Quota) -> str:
    """Return a warning if the pool, as last seen, has fewer GPUs than promised; else ""."""
    size = sum(room.units for room in whole_nodes(quota.pool)) // quota.pool.units_per_gpu
    if not quota.pool.has_gpus or quota.nominal_gpus <= size:
        return ""
    return _("%(tenant)s can use %(gpus)d GPUs of %(pool)s, but the pool has only %(size)d.") % {
        "tenant": quota.tenant, "gpus": quota.nominal_gpus, "pool": quota.pool, "size": size,
    }  # fmt: skip


def digest(found: Overuse) -> str:
    return hashlib.sha256("\n".join((found.whom, *found.what)).encode()).hexdigest()[:32]
