"""Checks that tenants held only what they may: quotas, borrowing, preemption, limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import inf

from tests.proof.life import records
from tests.proof.life.over_time import begun, held
from tests.proof.life.records import Claim, Event, Records, Share

# A pass over the queue that began before a share changed decides by the old share.
LONGEST_PASS = timedelta(seconds=10)
# Shortest time between the notice of a preemption and the end of the run: half of the day's grace, because the grace
# counts from the decision, and the notice is written once the row is free.
GRACE = timedelta(seconds=3)


def over_share(claims: Sequence[Claim], shares: Sequence[Share]) -> Iterator[str]:
    """Find claims admitted beyond their tenant's share at that moment. A restart may keep what it has."""
    for tenant, of in sorted({(share.tenant, share.of) for share in shares}):
        given = given_of(shares, tenant, of)
        of_tenant = [claim for claim in held(claims) if claim.tenant == tenant and amount(claim, of)]
        goes_on = continued(of_tenant)
        for claim in of_tenant:
            at = begun(claim)
            beside = [c for c in of_tenant if of not in records.OF_ONE or c.user == claim.user]
            used = sum(amount(c, of) for c in beside if is_held(c, at))
            if claim.id not in goes_on and used > (most := most_at(at, given)):
                yield f"double: claim {claim.id} made {used} {of} for {tenant}, which had {most}"


def amount(claim: Claim, of: str) -> Fraction | int:
    """Amount of a share that a claim takes."""
    if of == records.units_of(claim.pool):
        return claim.units
    if of == records.GPUS_OF_ONE:
        return Fraction(claim.units, claim.units_per_gpu)
    return int(of in (records.WORKSPACES, records.WORKSPACES_OF_ONE))


def is_held(claim: Claim, at: datetime) -> bool:
    return begun(claim) <= at and (claim.released_at is None or claim.released_at > at)


def continued(claims: Iterable[Claim]) -> set[str]:
    """Ids of claims that took over the units of a restarted run."""
    in_order = sorted(claims, key=lambda claim: (claim.holder, begun(claim)))
    return {
        later.id
        for claim, later in pairwise(in_order)
        if (claim.holder, claim.reason) == (later.holder, "renewed")
    }


def given_of(shares: Iterable[Share], tenant: str, of: str) -> list[Share]:
    return sorted((s for s in shares if (s.tenant, s.of) == (tenant, of)), key=lambda share: share.sent)


def maybe_in_force(at: datetime, given: Sequence[Share]) -> list[Share]:
    """Return the last share that was certainly in force, and all sent since. `given` is sorted by time."""
    over = [i for i, share in enumerate(given) if share.answered and share.answered + LONGEST_PASS <= at]
    return [share for share in given[over[-1] if over else 0 :] if share.sent <= at]


def most_at(at: datetime, given: Sequence[Share]) -> float:
    """The largest share that may have been in force then."""
    return max((share.most for share in maybe_in_force(at, given)), default=0)


# --- preemption


def hurried(claims: Iterable[Claim], events: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    """Find preempted runs that ended before the announced time, or less than GRACE after the notice."""
    known = {claim.id: claim for claim in claims}
    for holder, story in events.items():
        for event in story:
            if event.code != "given_back":
                continue
            claim = known[event.run or ""]
            warned = [e for e in story if e.code.startswith("asked_back") and e.number < event.number]
            if claim.reclaim_at is None or event.at < claim.reclaim_at:
                yield f"hurried: {holder} gave back at {event.at}, and was to at {claim.reclaim_at}"
            if not warned or event.at - warned[-1].at < GRACE:
                yield f"hurried: {holder} gave back at {event.at}, and was told so {len(warned)} times before"


def not_borrowed(found: Records) -> Iterator[str]:
    """Find preempted claims of tenants that held no more than their own units."""
    by_tenant = defaultdict[tuple[str, str], list[Claim]](list)
    for claim in held(found.claims):
        by_tenant[claim.tenant, claim.pool].append(claim)
    known = {claim.id: claim for claim in found.claims}
    for story in found.events.values():
        for event in story:
            if not event.code.startswith("asked_back"):
                continue
            claim = known[event.run or ""]
            until = pass_end(event.at, found.claims)
            beside = by_tenant[claim.tenant, claim.pool]
            used = sum(c.units for c in beside if is_held(c, event.at) or event.at < begun(c) < until)
            own = given_of(found.shares, claim.tenant, records.own_units_of(claim.pool))
            least = min((share.most for share in maybe_in_force(event.at, own)), default=0)
            if used <= least:
                yield f"double: claim {claim.id} was asked back, and {claim.tenant} had {used} of its own {least}"


def pass_end(at: datetime, claims: Iterable[Claim]) -> datetime:
    """Latest end of a preempting pass, whose admissions count as well. No claim is released during a pass."""
    released = (c.released_at for c in claims if c.released_at is not None and c.released_at > at)
    return min([*released, at + LONGEST_PASS])


# --- at rest


def too_long(found: Records) -> Iterator[str]:
    """Find ready workspaces that end later than any longest runtime of their tenant since their clock began."""
    for workspace in found.workspaces.values():
        if workspace.phase != "ready" or workspace.ready_at is None or workspace.deleted_at is not None:
            continue
        given = given_of(found.shares, workspace.tenant, records.MINUTES)
        ends = [last_end(began, given) for began in clocks(workspace.ready_at, found.events[workspace.id])]
        if workspace.stops_at is None:
            ends = ends[:1]  # no clock ran yet
        if (workspace.stops_at or NEVER) > max(ends):
            yield f"{workspace.id} runs until {workspace.stops_at}, and its tenant's end by {max(ends)}"


NEVER = datetime.max.replace(tzinfo=UTC)
# Events that end a run's clock. An interrupted run keeps its clock.
CLOCK_ENDS = {"requested", "restarting", "restart_by_admin", "given_back", "waits_again"}


def clocks(ready_at: datetime, story: Sequence[Event]) -> list[datetime]:
    """Possible beginnings of a ready workspace's clock: `ready_at`, or its first readiness on this clock."""
    since = max((event.number for event in story if event.code in CLOCK_ENDS), default=0)
    return [ready_at, *[event.at for event in story if event.code == "ready" and event.number > since][:1]]


def last_end(began: datetime, given: Sequence[Share]) -> datetime:
    in_force = [*maybe_in_force(began, given), *(share for share in given if share.sent > began)]
    most = max((share.most for share in in_force), default=inf)
    return NEVER if most == inf else began + timedelta(minutes=most)


def lived_rules(found: Records) -> dict[str, int]:
    """Count the uses of each sharing rule, for the table."""
    codes = [event.code for story in found.events.values() for event in story]
    told = ("given_back", "spared", "stopped_by_budget_spent", "lifetime_capped")
    return {code: codes.count(code) for code in told} | {
        "booked": sum(c.booking is not None for c in found.claims)
    }
