"""What is refused at once because it could never start, with what to ask for instead."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.errors import Invalid, Refusal
from quotas import pool_state, reasons
from quotas.models import Claim, Pool
from quotas.nodes import PoolNodes, nodes_of
from quotas.scheduling import Reason, as_gpus, never

# Which field of a request is too much.
FIELDS = {"above_cpu_limit": "cpu", "above_memory_limit": "memory_mib"}


def refuse_what_never_fits(claim: Claim) -> None:
    """Raise a Refusal when no wait would help: by the tenant's limits, or by the size of the nodes."""
    _refuse_wrong_kind(claim)
    waiting = pool_state.as_waiting(claim)
    quota = pool_state.tenant_quotas(claim.pool, {claim.tenant_id})[claim.tenant_id]
    reason = never(waiting, quota, claim.pool.units_per_gpu)
    if reason:
        raise refusal(reason)
    _refuse_larger_than_nodes(claim, nodes_of([claim.pool])[claim.pool_id])


def refusal(reason: Reason) -> Refusal:
    code = "quota_exceeded" if reason.code in {"above_quota", "no_quota"} else reason.code
    message = reasons.sentence(reason.code, reason.data)
    field = FIELDS.get(reason.code, "gpus")
    fields = {} if reason.code == "above_workspaces_limit" else {field: [message]}
    return Invalid(code, message, reasons.hint(reason.code, reason.data), fields=fields)


def _refuse_wrong_kind(claim: Claim) -> None:
    if claim.pool.has_gpus and not claim.units:
        message = _("Everything in this pool uses a GPU.")
        raise Invalid("gpus_required", message, _("Ask for GPUs, or choose a pool without."), fields={"gpus": [message]})
    if claim.units and not claim.pool.has_gpus:
        message = _("This pool has no GPUs.")
        raise Invalid("no_gpus_in_pool", message, _("Ask for none, or choose a pool with GPUs."), fields={"gpus": [message]})


def _refuse_larger_than_nodes(claim: Claim, nodes: PoolNodes) -> None:
    """By every node ever seen of the pool: one that is down may come back. None seen yet: nothing is known."""
    need = pool_state.as_waiting(claim).need
    if nodes.whole and not any(room.holds(need) for room in nodes.whole):
        raise refusal(larger_than_nodes(claim, nodes))
