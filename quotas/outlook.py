"""What would become of a request that nobody has made yet. By the rules of a pass; writes nothing."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from typing import TypedDict
from uuid import UUID

from accounts.errors import Refusal
from accounts.models import Tenant
from quotas import pool_state, reasons
from quotas.limits import refuse_what_never_fits
from quotas.models import Claim, Pool
from quotas.scheduling import PoolState, decide
from quotas.sharing import Portion

State = Claim.State
# Behind everybody who waits now.
LAST_PLACE = 2**63 - 1


class Outlook(TypedDict):
    """What would become of a request that is not made."""

    admissible: bool
    starts_now: bool
    position: int | None
    reasons: list[dict[str, str]]


class StartsNow:
    """Which of many requests of a tenant would start now. Each pool's state is read once, however many are asked."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self._states: dict[UUID, PoolState] = {}

    def holds(self, pool: Pool, portion: Portion, cpu_millicores: int, memory_mib: int) -> bool:
        if pool.has_gpus != bool(portion.units):
            return False
        claim = _claim(self.tenant, pool, portion, cpu_millicores, memory_mib)
        if pool.id not in self._states:
            self._states[pool.id] = pool_state.read(pool, [*_waiting(pool), claim])
        state = self._states[pool.id]
        # The last of those who wait is ours, whichever it was that the state was read with.
        asked = replace(state, waiting=(*state.waiting[:-1], pool_state.as_waiting(claim)))
        return all(waits.claim != claim.id for waits in decide(asked).waits)


def outlook(*, tenant: Tenant, pool: Pool, portion: Portion, cpu_millicores: int, memory_mib: int) -> Outlook:
    """Would such a request start now, or where would it stand? By the rules of a pass; writes nothing."""
    claim = _claim(tenant, pool, portion, cpu_millicores, memory_mib)
    try:
        refuse_what_never_fits(claim)
    except Refusal as refusal:
        reason = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        return Outlook(admissible=False, starts_now=False, position=None, reasons=[reason])
    for waits in decide(pool_state.read(pool, [*_waiting(pool), claim])).waits:
        if waits.claim == claim.id:
            found = reasons.in_queue(waits.reason.code, waits.reason.data, waits.position - 1)
            return Outlook(admissible=True, starts_now=False, position=waits.position, reasons=[found])
    return Outlook(admissible=True, starts_now=True, position=None, reasons=[])


def _waiting(pool: Pool) -> list[Claim]:
    return list(Claim.objects.filter(pool=pool, state=State.WAITING))


def _claim(tenant: Tenant, pool: Pool, portion: Portion, cpu_millicores: int, memory_mib: int) -> Claim:
    return Claim(
        tenant=tenant,
        pool=pool,
        **asdict(portion),
        cpu_millicores=cpu_millicores,
        memory_mib=memory_mib,
        holder_kind=Claim.Holder.WORKSPACE,
        holder_id=uuid.uuid4(),
        place=LAST_PLACE,
    )
