"""What tenants hold beyond what they may: after an admin lowered a quota or a limit. It stops nothing by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.translation import gettext as _

from quotas import budgets
from quotas.models import Budget, Claim, Quota, TenantLimit
from quotas.scheduling import as_gpus
from quotas.usage import held_over_all_pools, held_units


@dataclass(frozen=True)
class Overuse:
    """Whose share is smaller than what they hold, and sentences on it."""

    whom: str
    what: tuple[str, ...]


def of_quota(quota: Quota, gpus: int) -> Overuse | None:
    """What would be too much with so many GPUs."""
    pool = quota.pool
    claims = Claim.objects.filter(tenant=quota.tenant, pool=pool)
    holding = admitted(claims)
    used = sum(claim.units for claim in holding)
    if used <= gpus * pool.units_per_gpu:
        return None
    per_person: Counter[str] = Counter()
    for claim in holding:
        per_person[claim.user.username] += claim.units
    held = _(", ").join(
        f"{name} {as_gpus(units, pool.units_per_gpu)}" for name, units in sorted(per_person.items())
    )
    facts = {"used": as_gpus(used, pool.units_per_gpu), "limit": gpus}
    told = [
        _("It holds %(used)s GPUs and may use %(limit)s then.") % facts,
        _("Who holds them: %(people)s.") % {"people": held},
    ]
    starving = claims.filter(state=Claim.State.WAITING, units__gt=gpus * pool.units_per_gpu).select_related(
        "user"
    )
    if names := sorted({claim.user.username for claim in starving}):
        told.append(
            _("Who waits for more than that, and can then not start: %(people)s.")
            % {"people": _(", ").join(names)}
        )
    return Overuse(str(quota), tuple(told))


def of_limit(limit: TenantLimit) -> Overuse | None:
    held = held_over_all_pools({limit.tenant_id})[limit.tenant_id]
    told = [
        sentence % {"used": used, "limit": most}
        for sentence, used, most in (
            (
                _("It holds %(used)s CPU cores and may use %(limit)s then."),
                cores(held.cpu_millicores),
                cores(limit.cpu_millicores),
            ),
            (
                _("It holds %(used)s GiB of memory and may use %(limit)s then."),
                gib(held.memory_mib),
                gib(limit.memory_mib),
            ),
            (
                _("It runs %(used)s workspaces and may run %(limit)s at once then."),
                held.workspaces,
                limit.workspaces,
            ),
        )
        if most is not None and used is not None and used > most
    ]
    if not told:
        return None
    people = {claim.user.username for claim in admitted(Claim.objects.filter(tenant=limit.tenant))}
    return Overuse(
        str(limit), (*told, _("Who runs something: %(people)s.") % {"people": _(", ").join(sorted(people))})
    )


def of_budget(budget: Budget) -> Overuse | None:
    """What is spent of this month already."""
    [standing] = budgets.standings([budget], timezone.now())
    if not standing.is_spent:
        return None
    running = admitted(Claim.objects.filter(tenant=budget.tenant, units__gt=0, pool__weight__gt=0))
    people = {claim.user.username for claim in running if budget.user_id in (None, claim.user_id)}
    limit = floatformat(budgets.rounded(standing.limit), "-2")
    told = [
        _("It has %(limit)s GPU-hours this month then, and as many are spent already.") % {"limit": limit}
    ]
    if people:
        names = _(", ").join(sorted(people))
        told.append(_("Who runs something that stops after the grace: %(people)s.") % {"people": names})
    return Overuse(str(budget), tuple(told))


def all_quotas() -> list[tuple[Quota, int | float]]:
    """Every quota that is exceeded now, with the GPUs in use. Two queries."""
    quotas = list(Quota.objects.exclude(pool__resource_name="").select_related("tenant", "pool"))
    held = held_units({quota.tenant_id for quota in quotas})
    return [
        (quota, as_gpus(units, quota.pool.units_per_gpu))
        for quota in quotas
        if (units := held[quota.tenant_id, quota.pool_id]) > quota.nominal_gpus * quota.pool.units_per_gpu
    ]


def admitted(claims: QuerySet[Claim]) -> Iterable[Claim]:
    return claims.filter(state=Claim.State.ADMITTED).select_related("user")


def cores(millicores: int | None) -> float | None:
    return None if millicores is None else millicores / 1000


def gib(mib: int | None) -> float | None:
    return None if mib is None else round(mib / 1024, 2)
