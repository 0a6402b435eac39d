"""Life of a claim: request, admission, waiting and end. Every change of a claim's state is made here.

No quota and no node's room is ever exceeded, because only `admit` starts waiting claims, and a lock allows one pass at
a time per cluster (pools of a cluster may share nodes). Every other change only gives room back or hands it on, by a
guarded update that one of several callers wins.

Order of locks: the cluster's (`lock`), tenants' limits, then rows of claims and their holders. A use case that changes
a holder's row and its claim in one transaction takes the cluster's lock first, or it would deadlock with a pass. A use
case that creates both need not. `accounts/locks.py` has the locks before and after, and how rows are locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.announcements.showing import held_back
from accounts.errors import Conflict, TooMany
from accounts.locks import locked
from accounts.models import Scope, Tenant, User
from accounts.trail import audit
from quotas import live, passes, pool_state
from quotas.accounting import ledger
from quotas.allowed.limits import refuse_what_never_fits
from quotas.models import Claim, Pool, TenantLimit
from quotas.scheduling import BACK_OFF_MOST, Admitted, Decisions, Reason, Reclaim, Waits, decide
from quotas.sharing import Portion
from quotas.signals import (
    claim_admitted,
    claim_preempted,
    claim_preemption_cancelled,
    claim_released,
    claim_waits,
)

BACK_OFF_FIRST = timedelta(seconds=30)

State = Claim.State


def request(
    *,
    tenant: Tenant,
    user: User,
    pool: Pool,
    portion: Portion,
    cpu_millicores: int,
    memory_mib: int,
    holder_kind: str,
    holder_id: UUID,
    part: int = 0,
    priority: int = 0,
    nodes: int = 1,
    max_runtime_minutes: int | None = None,
    place: int | None = None,
    most_waiting: int | None = None,
) -> Claim:
    """Queue a claim, in the caller's transaction: at the end, or at an earlier claim's `place`.

    It asks for `nodes` equal members, each of the given portion, CPU and memory: they start together or not at all.
    Raises a Refusal if it could never start, or if so many of the person's claims wait already; and a Conflict if its
    holder has a live claim. If that claim came at the same time, the Conflict ends the transaction.
    """
    next_place, is_claimed, waiting = _next_place(holder_kind, holder_id, part, user)
    if is_claimed:
        raise _already_claimed()
    if most_waiting is not None and waiting >= most_waiting:
        raise _too_many_waiting(most_waiting)
    claim = Claim(
        tenant=tenant,
        user=user,
        pool=pool,
        **asdict(portion),
        cpu_millicores=cpu_millicores,
        memory_mib=memory_mib,
        holder_kind=holder_kind,
        holder_id=holder_id,
        part=part,
        members=nodes,
        priority=priority,
        max_runtime_minutes=max_runtime_minutes,
        place=next_place if place is None else place,
    )
    refuse_what_never_fits(claim)
    try:
        claim.save(force_insert=True)
    except IntegrityError as error:
        if "one_live_claim_per_part_of_a_holder" not in str(error):
            raise
        raise _already_claimed() from error
    passes.want(pool.id)
    return claim


def _too_many_waiting(most: int) -> TooMany:
    return TooMany(
        "too_many_waiting",
        _("You already have %(count)d waiting requests.") % {"count": most},
        _("Wait until some have started, or stop some."),
        retry_after_seconds=60,
    )


def _already_claimed() -> Conflict:
    return Conflict(
        "already_claimed",
        _("It is already running or waiting."),
        _("Stop it first if you want to start it again."),
    )


def lock(*cluster_ids: UUID) -> None:
    """Lock clusters until the transaction ends, to change claims and their holders. No pass runs meanwhile.

    To lock several clusters in one transaction, name all of them in one call.
    """
    with connection.cursor() as cursor:
        for cluster_id in sorted(cluster_ids):
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [_name(cluster_id)])


def admit(pool_id: UUID) -> int:
    """Run one pass over a pool's queue: start claims that fit, save why others wait. Return the number started.

    A pass that waits for the lock has not read yet, so it covers all changes until then. Never call inside a
    transaction: the lock would be released before the transaction ends.
    """
    while True:
        cluster_id = Pool.objects.values_list("cluster_id", flat=True).get(pk=pool_id)
        with _locked_beyond_transactions(cluster_id):
            if passes.begins(pool_id, cluster_id):  # the pool may have moved meanwhile
                return _pass(pool_id)


@contextmanager
def _locked_beyond_transactions(cluster_id: UUID) -> Iterator[None]:
    """Hold the lock of `lock`, also between transactions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [_name(cluster_id)])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [_name(cluster_id)])


def _name(cluster_id: UUID) -> str:
    return f"quotas.admit {cluster_id}"


@transaction.atomic
def _pass(pool_id: UUID) -> int:
    pool = Pool.objects.get(pk=pool_id)  # under the lock: it may just have been taken out of use
    claims = {claim.id: claim for claim in Claim.objects.filter(pool=pool, state=State.WAITING)}
    for claim in claims.values():
        claim.pool = pool
    limits = _lock_limits({claim.tenant_id for claim in claims.values()})
    held = held_back((claim.id, claim.user_id) for claim in claims.values())
    asking = [claim for claim in claims.values() if claim.id not in held]
    decisions = _with_held(decide(pool_state.read(pool, asking, limits)), held)
    actions = _actions(decisions, claims)
    started = sum(action() for action in actions)
    if _note_reasons(claims, decisions) or actions:
        live.on_change()
    if started:
        passes.want_after(pool.cluster_id, {claims[one.claim].tenant_id for one in decisions.admitted})
    return started


def _with_held(decisions: Decisions, held: Collection[UUID]) -> Decisions:
    """Add the claims that wait for the end of maintenance, behind all others."""
    begin = len(decisions.waits) + 1
    waits = (Waits(claim, begin + place, Reason("maintenance")) for place, claim in enumerate(held))
    return replace(decisions, waits=(*decisions.waits, *waits))


def release(claim_id: UUID, reason: str) -> bool:
    """End a claim whose pods are proven to have ended, or never existed. True for the one caller that did it."""
    with transaction.atomic():
        claim = _end(claim_id, from_states=[State.WAITING, State.ADMITTED], reason=reason)
        if claim is None:
            return False
        claim_released.send(sender=Claim, claim=claim, successor=None)
        passes.want_after(claim.pool.cluster_id, [claim.tenant_id])
        return True


def withdraw(claim_ids: Collection[UUID], reason: str) -> set[UUID]:
    """End many claims of one cluster that wait, in few queries. Requires its lock. Return those that were ended."""
    waiting = locked(Claim.objects.filter(pk__in=claim_ids, state=State.WAITING))
    claims = list(waiting.select_related("pool"))
    values = {
        "state": State.RELEASED,
        "released_at": timezone.now(),
        "reason_code": reason,
        "reason_data": {},
    }
    Claim.objects.filter(pk__in=[claim.pk for claim in claims]).update(**values)
    for claim in claims:
        for name, value in values.items():
            setattr(claim, name, value)
        claim_released.send(sender=Claim, claim=claim, successor=None)
    if claims:
        passes.want_after(claims[0].pool.cluster_id, {claim.tenant_id for claim in claims})
    return {claim.pk for claim in claims}


def renew(claim: Claim) -> Claim:
    """Restart: end the claim and admit its successor to the same units on the same nodes, in one step.

    Bounds on the claim's end hold for its successor too, or a restart would be a way around them.
    """
    with transaction.atomic():
        ended = _end_admitted(claim, "renewed")
        successor = _successor(
            ended,
            state=State.ADMITTED,
            node=ended.node,
            nodes=ended.nodes,
            extra=ended.extra,
            admitted_at=timezone.now(),
            booking_id=ended.booking_id,
            ends_at=ended.ends_at,
            must_end_at=ended.must_end_at,
            reclaim_at=ended.reclaim_at,
            reclaim_code=ended.reclaim_code,
            reclaim_for=ended.reclaim_for,
            budget_ends_at=ended.budget_ends_at,
        )
        claim_released.send(sender=Claim, claim=ended, successor=successor)
        claim_admitted.send(sender=Claim, claim=successor)
        passes.want_for_cluster(ended.pool.cluster_id)  # its end is known again, if it was in doubt
        return successor


def send_back(claim: Claim, code: str, data: dict[str, Any]) -> Claim:
    """End a claim that the cluster did not run. Queue its successor at the old place, with a back-off."""
    attempt = claim.attempt + 1
    not_before = timezone.now() + back_off(claim.attempt)
    return _queue_again(
        claim, code, attempt=attempt, not_before=not_before, reason_code=code, reason_data=data
    )


def give_back(claim: Claim) -> Claim:
    """End a preempted claim whose pod has ended. Its successor waits in front of the queue."""
    return _queue_again(claim, claim.reclaim_code or "reclaimed", returns_first=True)


def _queue_again(claim: Claim, code: str, **changes: Any) -> Claim:
    with transaction.atomic():
        ended = _end_admitted(claim, code)
        successor = _successor(ended, **{"returns_first": ended.returns_first} | changes)
        claim_released.send(sender=Claim, claim=ended, successor=successor)
        claim_waits.send(sender=Claim, claim=successor)
        passes.want_after(ended.pool.cluster_id, [ended.tenant_id])
        return successor


def move_end(claim_id: UUID, ends_at: datetime | None) -> None:
    """Record the new end that the room above enforces. Requires the cluster's lock; `ends.py` has the bounds."""
    if Claim.objects.filter(pk=claim_id, state=State.ADMITTED).update(ends_at=ends_at):
        passes.want_where_end_moved(claim_id)


def change_runtime(claim_id: UUID, minutes: int | None) -> None:
    """Change the lifetime that the holder asks for. Requires the cluster's lock."""
    if Claim.objects.filter(pk=claim_id).exclude(state=State.RELEASED).update(max_runtime_minutes=minutes):
        passes.want_where_end_moved(claim_id)


def flag_unproven_end(claim_id: UUID) -> bool:
    """Keep the units of a run whose pod vanished, until an admin confirms its end. True if this is new."""
    undoubted = Claim.objects.filter(pk=claim_id, state=State.ADMITTED, end_unproven_since=None)
    if not undoubted.update(end_unproven_since=timezone.now()):
        return False
    passes.want_where_end_moved(claim_id)  # nobody knows its end any more
    return True


def confirm_end(actor: Actor, claim: Claim) -> bool:
    """Release a run whose pod vanished, as an admin confirms that it has ended. False if it was not in doubt."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        lock(claim.pool.cluster_id)
        flagged = Claim.objects.filter(pk=claim.pk, state=State.ADMITTED, end_unproven_since__isnull=False)
        if not locked(flagged) or not release(claim.pk, "end_confirmed"):
            return False
        audit.record(actor, "claim.confirm_end", target=claim, tenant=claim.tenant, data={"node": claim.node})
        return True


def back_off(attempt: int) -> timedelta:
    """Return the shortest wait of a claim that was sent back this often before."""
    return min(BACK_OFF_FIRST * (1 << min(attempt, 10)), BACK_OFF_MOST)


def _actions(decisions: Decisions, claims: dict[UUID, Claim]) -> list[partial[bool]]:
    """Return the changes that a pass makes, each of which returns True if it started a claim.

    Holders' rows are locked in one order, or a pass would deadlock with code that enqueues many of them.
    """
    runs = Claim.objects.in_bulk([*(reclaim.run for reclaim in decisions.reclaims), *decisions.cancelled])
    actions = [
        *(partial(_start, claims[admitted.claim], admitted) for admitted in decisions.admitted),
        *(partial(_preempt, runs[reclaim.run], reclaim) for reclaim in decisions.reclaims),
        *(partial(_cancel_preemption, runs[pk]) for pk in decisions.cancelled),
    ]
    return sorted(actions, key=lambda action: action.args[0].holder_id)


def _start(claim: Claim, admitted: Admitted) -> bool:
    """Start a claim. False if it was released while this pass was deciding."""
    now = timezone.now()
    lasts = pool_state.lasts(claim.max_runtime_minutes)
    own_end = None if lasts is None else now + lasts
    values = {
        "state": State.ADMITTED,
        "node": admitted.node,
        "nodes": list(admitted.nodes),
        "extra": claim.pool.beside_gpus(claim.units),
        "admitted_at": now,
        "reason_code": "",
        "reason_data": {},
        "not_before": None,
        "booking_id": admitted.booking,
        "must_end_at": admitted.must_end_at,
        # The end that holds until the run is ready and its lifetime begins.
        "ends_at": min((end for end in (own_end, admitted.must_end_at) if end is not None), default=None),
    }
    if not Claim.objects.filter(pk=claim.pk, state=State.WAITING).update(**values):
        return False
    for name, value in values.items():
        setattr(claim, name, value)
    claim_admitted.send(sender=Claim, claim=claim)
    return True


def _preempt(run: Claim, reclaim: Reclaim) -> bool:
    """Preempt a run. It gets one signal, though the beneficiary may change later."""
    live = Claim.objects.filter(pk=run.pk, state=State.ADMITTED)
    if run.reclaim_at is not None:
        live.update(reclaim_code=reclaim.code, reclaim_for=reclaim.beneficiary)
        return False
    run.reclaim_at = timezone.now() + settings.RECLAIM_GRACE
    run.reclaim_code, run.reclaim_for = reclaim.code, reclaim.beneficiary
    if live.update(reclaim_at=run.reclaim_at, reclaim_code=run.reclaim_code, reclaim_for=run.reclaim_for):
        claim_preempted.send(sender=Claim, claim=run)
    return False


def _cancel_preemption(run: Claim) -> bool:
    """Cancel a preemption, unless the run is being taken down already."""
    asked = Claim.objects.filter(pk=run.pk, state=State.ADMITTED, reclaim_at__gt=timezone.now())
    if asked.update(reclaim_at=None, reclaim_code="", reclaim_for=None):
        claim_preemption_cancelled.send(sender=Claim, claim=run)
    return False


def _note_reasons(claims: dict[UUID, Claim], decisions: Decisions) -> bool:
    """Save changed reasons, equal ones in one update: the first pass over a long queue changes all. True if any was."""
    changed = {
        waits.claim: waits.reason
        for waits in decisions.waits
        if (claims[waits.claim].reason_code, claims[waits.claim].reason_data)
        != (waits.reason.code, waits.reason.data)
    }
    if not changed:
        return False
    still_waiting = locked(Claim.objects.filter(pk__in=changed, state=State.WAITING))
    same: defaultdict[str, list[Claim]] = defaultdict(list)
    for pk in still_waiting.values_list("pk", flat=True):
        claim, reason = claims[pk], changed[pk]
        claim.reason_code, claim.reason_data = reason.code, dict(reason.data)
        same[repr(reason)].append(claim)
    for alike in same.values():
        Claim.objects.filter(pk__in=[claim.pk for claim in alike]).update(
            reason_code=alike[0].reason_code, reason_data=alike[0].reason_data
        )
        for claim in alike:
            claim_waits.send(sender=Claim, claim=claim)
    return True


def _end_admitted(claim: Claim, reason: str) -> Claim:
    ended = _end(claim.pk, from_states=[State.ADMITTED], reason=reason)
    if ended is None:
        raise Conflict("not_admitted", _("It no longer runs."), _("Reload it, then start it."))
    return ended


def _end(claim_id: UUID, *, from_states: list[str], reason: str) -> Claim | None:
    live = Claim.objects.filter(pk=claim_id, state__in=from_states)
    ended = live.update(
        state=State.RELEASED,
        released_at=timezone.now(),
        reason_code=reason,
        reason_data={},
        end_unproven_since=None,
    )
    if not ended:
        return None
    claim = Claim.objects.select_related("pool").get(pk=claim_id)
    ledger.close(claim)
    return claim


def _successor(ended: Claim, **changes: Any) -> Claim:
    return Claim.objects.create(
        pool=ended.pool,
        tenant_id=ended.tenant_id,
        user_id=ended.user_id,
        holder_kind=ended.holder_kind,
        holder_id=ended.holder_id,
        part=ended.part,
        members=ended.members,
        units=ended.units,
        cards=ended.cards,
        card_memory_mib=ended.card_memory_mib,
        card_cores=ended.card_cores,
        cpu_millicores=ended.cpu_millicores,
        memory_mib=ended.memory_mib,
        max_runtime_minutes=ended.max_runtime_minutes,
        priority=ended.priority,
        place=ended.place,
        **changes,
    )


def _next_place(holder_kind: str, holder_id: UUID, part: int, user: User) -> tuple[int, bool, int]:
    """Return the next place, whether that part has a live claim, and how many of the person's claims wait.

    Places come from one sequence, so that later requests stand later on any machine.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval('quotas_claim_place'),"
            " EXISTS (SELECT FROM quotas_claim"
            " WHERE holder_kind = %s AND holder_id = %s AND part = %s AND state <> %s),"
            " (SELECT count(*) FROM quotas_claim WHERE user_id = %s AND state = %s)",
            [holder_kind, holder_id, part, State.RELEASED, user.pk, State.WAITING],
        )
        place, is_claimed, waiting = cursor.fetchone()
        return int(place), bool(is_claimed), int(waiting)


def _lock_limits(tenants: set[UUID]) -> dict[UUID, TenantLimit | None]:
    """Lock tenants' limits, and return them: they hold over all clusters, whose passes may run at once."""
    rows = locked(TenantLimit.objects.filter(tenant__in=tenants))
    return dict.fromkeys(tenants) | {limit.tenant_id: limit for limit in rows}
