"""Immediate refusals of requests that could never start, with hints what to request instead."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.errors import Invalid, Refusal
from clusters.isolation.deciding import refuse_unknown
from quotas import pool_state, reasons
from quotas.models import MOST_MEMBERS, Claim, Pool
from quotas.pools.nodes import whole_nodes
from quotas.scheduling import Reason, Room, Waiting, never, too_large

# By reason code: the field of the request that is too large, and the API's code where that differs.
FIELDS = {
    "no_quota": "gpus",
    "above_quota": "gpus",
    "above_person_gpus": "gpus",
    "no_node_has_gpus": "gpus",
    "no_node_has_cards": "gpus",
    "above_cpu_limit": "cpu",
    "no_node_has_cpu": "cpu",
    "above_memory_limit": "memory_mib",
    "no_node_has_memory": "memory_mib",
    "no_room_for_so_many": "nodes",
}
CODES = {"no_quota": "quota_exceeded", "above_quota": "quota_exceeded"}


def refuse_what_never_fits(claim: Claim) -> None:
    """Raise a Refusal if waiting would not help: wrong kind, closed pool, above a limit, larger than every node, or a
    cluster that cannot isolate tenants.
    """
    _refuse_wrong_kind(claim)
    _refuse_number(claim)
    refuse_unknown(claim.pool.cluster)
    if not claim.pool.is_open:
        raise _refusal(Reason("pool_closed"))
    waiting = pool_state.as_waiting(claim, claim.pool)
    may_hold = pool_state.may_hold(claim)
    reason = never(waiting, may_hold, claim.pool.units_per_gpu) or _too_large(claim.pool, waiting)
    if reason:
        raise _refusal(reason)


def _too_large(pool: Pool, asked: Waiting) -> Reason | None:
    """Return why the known nodes are not large enough, if so. Nodes that are down count: they may come back."""
    seen: list[Room] = []
    left = asked.members
    for room in whole_nodes(pool):
        left -= room.count(asked.need, left)
        if left <= 0:
            return None
        seen.append(room)
    return too_large(seen, asked.need, pool.units_per_gpu, asked.members) if seen else None


def _refusal(reason: Reason) -> Refusal:
    message = reasons.sentence(reason.code, reason.data)
    field = FIELDS.get(reason.code)
    return Invalid(
        CODES.get(reason.code, reason.code),
        message,
        reasons.hint(reason.code, reason.data),
        fields={field: [message]} if field else {},
    )


def _refuse_wrong_kind(claim: Claim) -> None:
    if claim.pool.has_gpus and not claim.units:
        message = _("Everything in this pool uses a GPU.")
        hint = _("Request GPUs, or choose a pool without GPUs.")
        raise Invalid("gpus_required", message, hint, fields={"gpus": [message]})
    if claim.units and not claim.pool.has_gpus:
        message = _("This pool has no GPUs.")
        hint = _("Request no GPUs, or choose a pool with GPUs.")
        raise Invalid("no_gpus_in_pool", message, hint, fields={"gpus": [message]})


def _refuse_number(claim: Claim) -> None:
    if not 1 <= claim.members <= MOST_MEMBERS:
        message = _("Request 1 to %(most)d nodes.") % {"most": MOST_MEMBERS}
        raise Invalid("invalid_nodes", message, _("Correct the named field."), fields={"nodes": [message]})
