"""Reasons why a claim waits, as a code with figures; the words are in `quotas/reasons.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from uuid import UUID

from .gangs import could_hold
from .shares import NAMES, Share, asked_by
from .state import BACK_OFF_MOST, PersonUse, PoolState, Reason, Room, TenantQuota, Waiting, as_gpus

AMOUNTS: tuple[tuple[str, Callable[[Room], int]], ...] = (
    ("cpu", attrgetter("cpu_millicores")),
    ("memory", attrgetter("memory_mib")),
)
NOTHING_HELD = PersonUse()


def never(claim: Waiting, quota: TenantQuota, units_per_gpu: int) -> Reason | None:
    """Return why limits of the tenant or person can never let the claim start; None if they can."""
    limit, (units, cpu_millicores, memory_mib, workspaces) = quota.limit_units, asked_by(claim)
    if limit == 0 and units:
        return Reason("no_quota")
    gpus = as_gpus(units, units_per_gpu)
    if limit is not None and units > limit:
        return Reason("above_quota", {"gpus": gpus, "limit_gpus": as_gpus(limit, units_per_gpu)})
    for name, asked, most in (
        ("cpu", cpu_millicores, quota.limits.cpu_millicores),
        ("memory", memory_mib, quota.limits.memory_mib),
        ("workspaces", workspaces, quota.limits.workspaces),
    ):
        if most is not None and asked > most:
            return Reason(f"above_{name}_limit", {"asked": asked, "limit": most})
    person = quota.people.get(claim.user, NOTHING_HELD)
    if person.most_gpus is not None and units > person.most_gpus * units_per_gpu:
        return Reason("above_person_gpus", {"gpus": gpus, "limit_gpus": person.most_gpus})
    if claim.is_workspace and person.most_workspaces == 0:
        return Reason("above_person_workspaces", {"limit": 0})
    return None


def limit_full(claim: Waiting, state: PoolState, number: int, share: Share) -> Reason:
    """Return the reason for a full limit: its tenant, or the person in it, holds too much of it."""
    quota, per_gpu, name = state.tenants[claim.tenant], state.units_per_gpu, NAMES[number]
    gpus = {"gpus": as_gpus(claim.units, per_gpu)}
    if share.user is not None:
        person = quota.people[share.user]
        if name == "workspaces":
            return Reason("person_workspaces_full", {"limit": person.most_workspaces})
        held = (person.most_gpus or 0) * per_gpu - share.left(number)
        limits = {"used_gpus": as_gpus(held, per_gpu), "limit_gpus": person.most_gpus}
        return Reason("person_gpus_full", gpus | limits)
    if name != "gpus":
        limit = (quota.limits.cpu_millicores, quota.limits.memory_mib, quota.limits.workspaces)[
            number - 1
        ] or 0
        together = limit - share.left(number) + asked_by(claim)[number]
        return Reason(f"{name}_limit_full", {"together": together, "limit": limit})
    most, own = quota.limit_units or 0, quota.nominal_units
    used = as_gpus(most - share.left(number), per_gpu)
    data = gpus | {"used_gpus": used, "limit_gpus": as_gpus(most, per_gpu)}
    if own is None or own >= most:
        return Reason("quota_full", data)
    return Reason("borrow_limit", {**data, "own_gpus": as_gpus(own, per_gpu)})


def shortage(rooms: Sequence[Room], need: Room, units_per_gpu: int) -> Reason:
    """Return what is lacking now, for a need that fits once other runs have ended."""
    gpus = as_gpus(need.units, units_per_gpu)
    if need.only is not None:
        there = [room for room in rooms if room.may_be_for(need)]
        on = {"on": sorted(need.only)}
        if _first_lacking(there, need)[0] != "gpus":
            return Reason("volume_node_busy", on)
        free_there = as_gpus(sum(room.units for room in there), units_per_gpu)
        return Reason("volume_node_full", {**on, "gpus": gpus, "free_gpus": free_there})
    name, asked, most = _first_lacking(rooms, need)
    if name == "cards":
        free_mib = sum(card.memory_mib for room in rooms for card in room.cards)
        data = {"cards": asked, "free_cards": most, "free_memory_mib": free_mib}
        return Reason("no_free_cards", data | _of_card(need))
    if name in dict(need.extra):
        return Reason("no_free_extra", {"resource": name, "asked": asked, "free": most})
    if name != "gpus":
        return Reason(f"no_free_{name}", {"asked": asked, "free": most})
    free = [room.units for room in rooms if room.units > 0]
    figures = {"gpus": gpus, "free_gpus": as_gpus(sum(free), units_per_gpu)}
    if sum(free) < need.units:
        return Reason("no_free_gpus", figures)
    largest = as_gpus(most, units_per_gpu)
    return Reason("fragmented", {**figures, "largest_free_gpus": largest, "nodes": len(free)})


def with_out(lacking: Reason, state: PoolState) -> Reason:
    """Return the reason with the pool's nodes and GPUs that are out of order, if any."""
    return Reason(lacking.code, {**lacking.data, "out": dict(state.out)}) if state.out else lacking


def too_large(rooms: Sequence[Room], need: Room, units_per_gpu: int, members: int = 1) -> Reason | None:
    """Return why these rooms could never hold the need, once for each member; None if they could."""
    if any(room.holds(need) for room in rooms):
        if could_hold(rooms, need, members):
            return None
        if need.only is not None:
            return Reason("volume_node_small", {"on": sorted(need.only)})
        most = sum(room.count(need, members) for room in rooms)
        return Reason("no_room_for_so_many", {"nodes": members, "most": most})
    if need.only is not None:
        where = {"on": sorted(need.only)}
        if any(room.may_be_for(need) for room in rooms):
            return Reason("volume_node_small", where)
        return Reason("volume_elsewhere", where)
    name, asked, most = _first_lacking(rooms, need)
    if name == "cards":
        return Reason("no_node_has_cards", {"cards": asked, "largest_cards": most, **_of_card(need)})
    if name in dict(need.extra):
        return Reason("no_node_has_extra", {"resource": name, "asked": asked, "largest": most})
    if name != "gpus":
        return Reason(f"no_node_has_{name}", {"asked": asked, "largest": most})
    return Reason(
        "no_node_has_gpus",
        {"gpus": as_gpus(need.units, units_per_gpu), "largest_gpus": as_gpus(most, units_per_gpu)},
    )


def _of_card(need: Room) -> dict[str, int]:
    return {"card_memory_mib": need.cards[0].memory_mib, "card_cores": need.cards[0].cores_percent}


def _first_lacking(rooms: Iterable[Room], need: Room) -> tuple[str, int, int]:
    """Return the first of GPUs, CPU, memory, other resources and pods that no node has together with those before it.

    With its name come the amount asked for and the most that a node has.
    """
    gpus: Callable[[Room], int] = attrgetter("units")
    name, asked = "gpus", need.units
    if need.cards:
        name, asked = "cards", len(need.cards)
        gpus = lambda room: sum(card.holds(need.cards[0]) for card in room.cards)  # noqa: E731
    extra = ((resource, number, _extra(resource)) for resource, number in need.extra)
    steps = ((name, asked, gpus), *((name, amount(need), amount) for name, amount in AMOUNTS), *extra)
    for name, asked, amount in steps:
        enough = [room for room in rooms if amount(room) >= asked]
        if not enough:
            return name, asked, max([0, *(amount(room) for room in rooms)])
        rooms = enough
    return "pods", need.pods, 0


def _extra(resource: str) -> Callable[[Room], int]:
    return lambda room: dict(room.extra).get(resource, 0)


# --- Standby: claims that cannot start whatever is free, so nobody waits for them


def standing_by(state: PoolState) -> Mapping[UUID, Reason]:
    """Return the claims on standby, each with its reason."""
    rooms = [node.without_ours for node in state.nodes]
    too_large_for_all: dict[tuple[Room, int], Reason | None] = {}
    found = {}
    for claim in state.waiting:
        asked = claim.need, claim.members
        if asked not in too_large_for_all:
            found_large = too_large(rooms, claim.need, state.units_per_gpu, claim.members)
            if found_large and claim.need.only and claim.need.only & state.resting:
                found_large = Reason("volume_node_out", found_large.data)
            too_large_for_all[asked] = found_large and with_out(found_large, state)
        reason = _reason(state, claim, too_large_for_all[asked])
        if reason is not None:
            found[claim.claim] = reason
    return found


def backs_off(state: PoolState, claim: Waiting) -> bool:
    """Return True while in back-off. A longer one than BACK_OFF_MOST predates a clock set back: it is over."""
    return claim.not_before is not None and state.now < claim.not_before <= state.now + BACK_OFF_MOST


def _reason(state: PoolState, claim: Waiting, too_large_for_all: Reason | None) -> Reason | None:
    quota = state.tenants[claim.tenant]
    if backs_off(state, claim):
        return claim.reason
    if not state.is_open:
        return Reason("pool_closed")
    if not state.nodes:
        return with_out(Reason("no_node_ready"), state)
    reason = never(claim, quota, state.units_per_gpu) or too_large_for_all
    return reason or quota.blocked or quota.blocked_people.get(claim.user)
