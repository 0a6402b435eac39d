"""Amounts held at one moment, and the most allowed: read from rows, without the code under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from accounts.models import Membership
from clusters.models import Node
from quotas import pool_state
from quotas.models import Claim, Pool, Quota, TenantLimit
from quotas.scheduling import decide
from tests.quotas.scheduling.oracle import could_have_started
from tests.shared.stage import GPU

Held = Counter[tuple[str, ...]]
NO_LIMIT = 1 << 60


def held(claims: Iterable[Claim]) -> Held:
    """Sum by node, by tenant and pool, and over all pools by tenant and by person."""
    sums: Held = Counter()
    for claim in claims:
        tenant = str(claim.tenant_id)
        assert len(claim.nodes) == claim.members, "a part of a claim was placed"
        for node in claim.nodes:
            sums["GPUs of node", str(claim.pool.cluster_id), node] += claim.units
            sums["GPUs of tenant in pool", tenant, str(claim.pool_id)] += claim.units
            sums["CPU of tenant", tenant] += claim.cpu_millicores
            sums["GPUs of person", tenant, str(claim.user_id)] += claim.units
        if claim.holder_kind == Claim.Holder.WORKSPACE:
            sums["workspaces of tenant", tenant] += 1
            sums["workspaces of person", tenant, str(claim.user_id)] += 1
    return sums


def held_now() -> Held:
    """Sum what is held now, in one snapshot."""
    return held(Claim.objects.filter(state="admitted").select_related("pool"))


def allowed_now() -> Held:
    most: Held = Counter()
    for node in Node.objects.all():
        most["GPUs of node", str(node.cluster_id), node.name] = node.allocatable[GPU]
    for pool in Pool.objects.all():
        for quota in Quota.objects.filter(pool=pool):
            own_and_borrowed = quota.nominal_gpus + quota.borrowing_limit_gpus
            most["GPUs of tenant in pool", str(quota.tenant_id), str(pool.pk)] = own_and_borrowed
    limits = {limit.tenant_id: limit for limit in TenantLimit.objects.all()}
    for member in Membership.objects.all():
        tenant, limit = str(member.tenant_id), limits.get(member.tenant_id, TenantLimit())
        person = (tenant, str(member.user_id))
        most["CPU of tenant", tenant] = _or_none(limit.cpu_millicores)
        most["workspaces of tenant", tenant] = _or_none(limit.workspaces)
        most["GPUs of person", *person] = _or_none(limit.person_gpus)
        most["workspaces of person", *person] = _or_none(limit.person_workspaces)
    return most


def _or_none(limit: int | None) -> int:
    return NO_LIMIT if limit is None else limit


class Most:
    """The most that may be held during a batch: what was allowed at any time of the batch, or held before.

    A lowered quota or a smaller node takes nothing back from runs.
    """

    def __init__(self) -> None:
        self.most = held_now() | allowed_now()

    def also(self, allowed: Held) -> None:
        self.most |= allowed

    def holds(self, sums: Held, when: object) -> None:
        too_much = {
            what: (amount, self.most[what]) for what, amount in sums.items() if amount > self.most[what]
        }
        assert not too_much, f"more than allowed {when}: {too_much}"


def at_every_admission_since(began: datetime) -> Iterator[tuple[datetime, Held]]:
    """Yield the time of each admission and what was held then, by the claims' own intervals."""
    ran = list(Claim.objects.filter(admitted_at__isnull=False).select_related("pool"))
    for moment in sorted(
        claim.admitted_at for claim in ran if claim.admitted_at and claim.admitted_at >= began
    ):
        yield moment, held(claim for claim in ran if runs_at(claim, moment))


def runs_at(claim: Claim, moment: datetime) -> bool:
    assert claim.admitted_at is not None
    return claim.admitted_at <= moment and (claim.released_at is None or moment < claim.released_at)


def could_start() -> list[str]:
    """Return claims that wait although a pass would start them, or brute force says that it should."""
    found = []
    for pool in Pool.objects.all():
        waiting = Claim.objects.filter(pool=pool, state="waiting")
        state = pool_state.read(pool, waiting)
        decisions = decide(state)
        late = [*(admitted.claim for admitted in decisions.admitted), *could_have_started(state, decisions)]
        found += [f"{pool} {claim.pk}: {claim.reason_code}" for claim in waiting if claim.pk in late]
    return found
