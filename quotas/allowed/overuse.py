"""Use above a quota, limit or budget, after an admin lowered it. Nothing is stopped here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from quotas.accounting import budgets
from quotas.allowed.storage import Promise, amounts, promises_to
from quotas.allowed.usage import held_by_people, held_over_all_pools, held_units
from quotas.models import Budget, Claim, Quota, TenantLimit, of_all_members
from quotas.scheduling import as_gpus


@dataclass(frozen=True)
class Overuse:
    """A share (`whom`) that is smaller than its use, and sentences about it (`what`)."""

    whom: str
    what: tuple[str, ...]


def of_quota(quota: Quota, *, is_gone: bool = False) -> Overuse | None:
    """Return the overuse with this quota, or without any (`is_gone`); None if there is none."""
    pool = quota.pool
    own = 0 if is_gone else quota.nominal_gpus
    gpus = 0 if is_gone else quota.limit_gpus
    claims = Claim.objects.filter(tenant=quota.tenant, pool=pool)
    holding = admitted(claims)
    used = sum(claim.all_units for claim in holding)
    if used <= own * pool.units_per_gpu:
        return None
    per_person: Counter[str] = Counter()
    for claim in holding:
        per_person[claim.user.username] += claim.all_units
    held = _(", ").join(
        f"{name} {as_gpus(units, pool.units_per_gpu)}" for name, units in sorted(per_person.items())
    )
    facts = {"used": as_gpus(used, pool.units_per_gpu), "limit": gpus, "own": own}
    text = _("It uses %(used)s GPUs, of which %(own)s will be its own: the others can be reclaimed.")
    if used > gpus * pool.units_per_gpu:
        text = _("It uses %(used)s GPUs; its new limit is %(limit)s.")
    said = [text % facts, _("Used by: %(people)s.") % {"people": held}]
    waiting = claims.filter(state=Claim.State.WAITING).alias(asked=of_all_members("units"))
    starving = waiting.filter(asked__gt=gpus * pool.units_per_gpu)
    if people := _people(starving):
        said.append(
            _("Waiting for more than that, and then unable to start: %(people)s.") % {"people": people}
        )
    return Overuse(str(quota), tuple(said))


def of_limit(limit: TenantLimit) -> Overuse | None:
    held = held_over_all_pools({limit.tenant_id})[limit.tenant_id]
    promises = promises_to({limit.tenant_id})
    stored = amounts(promises, None)
    said = [
        sentence % {"used": used, "limit": most}
        for sentence, used, most in (
            (
                _("It uses %(used)s CPU cores; its new limit is %(limit)s."),
                cores(held.cpu_millicores),
                cores(limit.cpu_millicores),
            ),
            (
                _("It uses %(used)s GiB of memory; its new limit is %(limit)s."),
                gib(held.memory_mib),
                gib(limit.memory_mib),
            ),
            (
                _("It runs %(used)s workspaces; its new limit is %(limit)s at once."),
                held.workspaces,
                limit.workspaces,
            ),
            (
                _("It uses %(used)s GiB of storage; its new limit is %(limit)s."),
                gib(stored["storage_mib"]),
                gib(limit.storage_mib),
            ),
            (
                _("It uses %(used)s GiB for homes; its new limit is %(limit)s."),
                gib(stored["homes_mib"]),
                gib(limit.homes_mib),
            ),
            (
                _("It uses %(used)s GiB for local disks; its new limit is %(limit)s."),
                gib(stored["disks_mib"]),
                gib(limit.disks_mib),
            ),
            (
                _("It uses %(used)s GiB for datasets; its new limit is %(limit)s."),
                gib(stored["datasets_mib"]),
                gib(limit.datasets_mib),
            ),
        )
        if most is not None and used is not None and used > most
    ]
    said += [*_of_people(limit), *_of_storage(limit, promises), *_of_longest(limit)]
    if not said:
        return None
    people = _people(admitted(Claim.objects.filter(tenant=limit.tenant)))
    return Overuse(str(limit), (*said, _("Running workspaces of: %(people)s.") % {"people": people}))


def of_budget(budget: Budget) -> Overuse | None:
    """Return the overuse if this month's hours are already spent; else None."""
    [standing] = budgets.standings([budget], timezone.now())
    if not standing.is_spent:
        return None
    running = admitted(Claim.objects.filter(tenant=budget.tenant, units__gt=0, pool__weight__gt=0))
    people = _people(running if budget.user_id is None else running.filter(user=budget.user_id))
    limit = floatformat(budgets.rounded(standing.limit), "-2")
    said = [
        _("Its new limit is %(limit)s GPU-hours this month, and that many are already used.")
        % {"limit": limit}
    ]
    if people:
        said.append(_("Workspaces that stop after the grace: of %(people)s.") % {"people": people})
    return Overuse(str(budget), tuple(said))


def _of_people(limit: TenantLimit) -> Iterable[str]:
    """Yield a sentence per person who holds more than one person may."""
    held = held_by_people({limit.tenant_id})
    names = dict(User.objects.filter(pk__in=[user for _tenant, user in held]).values_list("pk", "username"))
    for (_tenant, user), (gpus, workspaces) in sorted(held.items(), key=lambda item: names[item[0][1]]):
        facts = {
            "person": names[user],
            "gpus": as_gpus(gpus.numerator, gpus.denominator),
            "count": workspaces,
        }
        if limit.person_gpus is not None and gpus > limit.person_gpus:
            sentence = _("%(person)s uses %(gpus)s GPUs; the new limit per person is %(limit)s.")
            yield sentence % {**facts, "limit": limit.person_gpus}
        if limit.person_workspaces is not None and workspaces > limit.person_workspaces:
            sentence = _("%(person)s runs %(count)s workspaces; the new limit per person is %(limit)s.")
            yield sentence % {**facts, "limit": limit.person_workspaces}


def _of_storage(limit: TenantLimit, promises: Iterable[Promise]) -> Iterable[str]:
    """Yield a sentence per person who has more storage than one person may."""
    most = limit.person_storage_mib
    if most is None:
        return
    had: Counter[Any] = Counter()
    for one in promises:
        had[one.person] += one.mib
    over = {person: mib for person, mib in had.items() if person is not None and mib > most}
    names = User.objects.filter(pk__in=over).order_by("username").values_list("pk", "username")
    for person, name in names:
        facts = {"person": name, "used": gib(over[person]), "limit": gib(most)}
        yield _("%(person)s has %(used)s GiB of storage; the new limit per person is %(limit)s.") % facts


def _of_longest(limit: TenantLimit) -> Iterable[str]:
    """Yield a sentence on runs that keep a longer lifetime."""
    longest = limit.longest_runtime_minutes
    if longest is None:
        return
    asked_more = Q(max_runtime_minutes=None) | Q(max_runtime_minutes__gt=longest)
    if people := _people(admitted(Claim.objects.filter(asked_more, tenant=limit.tenant))):
        yield _("Workspaces that already run longer keep their end time: %(people)s.") % {"people": people}


def all_quotas() -> list[tuple[Quota, int | float]]:
    """Return the quotas exceeded now, borrowing included, with the GPUs in use. Two queries."""
    quotas = list(Quota.objects.exclude(pool__resource_name="").select_related("tenant", "pool"))
    held = held_units({quota.tenant_id for quota in quotas})
    return [
        (quota, as_gpus(units, quota.pool.units_per_gpu))
        for quota in quotas
        if (units := held[quota.tenant_id, quota.pool_id]) > quota.limit_gpus * quota.pool.units_per_gpu
    ]


def admitted(claims: QuerySet[Claim]) -> QuerySet[Claim]:
    return claims.filter(state=Claim.State.ADMITTED).select_related("user")


def _people(claims: QuerySet[Claim]) -> str:
    """Return the names of the claims' people, each once; "" if there are no claims."""
    return _(", ").join(sorted(set(claims.values_list("user__username", flat=True))))


def cores(millicores: int | None) -> float | None:
    return None if millicores is None else millicores / 1000


def gib(mib: int | None) -> float | None:
    return None if mib is None else round(mib / 1024, 2)
