"""State that the next pass would read: decisions applied to a state, and the end of the runs that end next."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from uuid import UUID

from quotas.scheduling import Decisions, Limits, PoolState, Run, TenantQuota, Waiting
from quotas.scheduling.shares import asked_by


def at_next_end(state: PoolState) -> PoolState:
    now = min(run.ends_at for node in state.nodes for run in node.runs if run.ends_at)
    nodes = []
    for node in state.nodes:
        free = node.free
        for run in node.runs:
            free = free.with_back(run.takes, node.without_ours) if run.ends_at == now else free
        nodes.append(replace(node, free=free, runs=tuple(run for run in node.runs if run.ends_at != now)))
    return replace(state, nodes=tuple(nodes), now=now)


def applied(state: PoolState, decisions: Decisions) -> PoolState:
    """Return the state as the next pass would read it."""
    claims = {claim.claim: claim for claim in state.waiting}
    told = {one.run: one.beneficiary for one in decisions.reclaims}
    nodes = []
    for node in state.nodes:
        free, there = node.free, [asked(run, told, decisions, state) for run in node.runs]
        for admitted in decisions.admitted:
            claim = claims[admitted.claim]
            for _member in range(admitted.nodes.count(node.name)):
                ends = [None if claim.lasts is None else state.now + claim.lasts, admitted.must_end_at]
                end = min((end for end in ends if end is not None), default=None)
                free -= claim.need
                there.append(
                    Run(
                        claim.claim,
                        claim.tenant,
                        claim.user,
                        claim.need,
                        state.now,
                        end,
                        booking=admitted.booking,
                    )
                )
                there[-1] = replace(
                    there[-1],
                    is_workspace=claim.is_workspace,
                    priority=claim.priority,
                    members=claim.members,
                )
        nodes.append(replace(node, free=free, runs=tuple(there)))
    started = [claims[admitted.claim] for admitted in decisions.admitted]
    return replace(
        state,
        nodes=tuple(nodes),
        waiting=tuple(claim for claim in state.waiting if claim not in started),
        tenants={
            tenant: used_more(tenant, quota, started, state.units_per_gpu)
            for tenant, quota in state.tenants.items()
        },
    )


def asked(run: Run, told: dict[UUID, UUID], decisions: Decisions, state: PoolState) -> Run:
    if run.claim in decisions.cancelled:
        return replace(run, reclaim_at=None, reclaim_for=None)
    if run.claim in told:
        return replace(run, reclaim_at=run.reclaim_at or state.now + state.grace, reclaim_for=told[run.claim])
    return run


def used_more(tenant: UUID, quota: TenantQuota, started: list[Waiting], per_gpu: int) -> TenantQuota:
    mine = [claim for claim in started if claim.tenant == tenant]
    used = Limits(
        (quota.used.cpu_millicores or 0) + sum(asked_by(claim)[1] for claim in mine),
        (quota.used.memory_mib or 0) + sum(asked_by(claim)[2] for claim in mine),
        (quota.used.workspaces or 0) + sum(claim.is_workspace for claim in mine),
    )
    people = dict(quota.people)
    for claim in mine:
        if claim.user in people:
            p = people[claim.user]
            people[claim.user] = replace(
                p,
                gpus=p.gpus + Fraction(claim.units, per_gpu),
                workspaces=p.workspaces + claim.is_workspace,
            )
    units = quota.used_units + sum(claim.units for claim in mine)
    return replace(quota, used_units=units, used=used, people=people)
