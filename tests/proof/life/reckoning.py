"""Checks of a day's records. They are pure and yield one line per violation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from tests.proof.life.over_time import begun, by_run, held, peaks
from tests.proof.life.records import Asked, Audited, Booking, Claim, Event, Heard, Lived, PodLife, Records
from tests.proof.life.sharing import hurried, not_borrowed, over_share

# Timestamps of the cluster are whole seconds.
SECOND = timedelta(seconds=1)
# Longest time from a claim's release to the event that reports it: both are in one transaction.
LONGEST_TRANSACTION = timedelta(seconds=30)
KEPT = "PersistentVolumeClaim"


def reckon(found: Records) -> list[str]:
    """Return all violations."""
    return [
        *faulty_answers(found.asked),
        *lost(found),
        *done_twice(found),
        *doubles(found.lived, found.pods),
        *overlapping(found.claims),
        *given_twice(found.claims, found.pool_units),
        *placed_twice(found.pods, found.node_units),
        *over_share(found.claims, found.shares),
        *hurried(found.claims, found.events),
        *not_borrowed(found),
        *overbooked(found.bookings, found.pool_units),
        *beside_bookings(found.claims, found.bookings),
        *gaps(found),
        *misheard(found.heard, found.events),
        *unaccounted(found.claims),
        *untold(found.claims, found.events),
        *outside(found.pods, found.claims),
        *unequal_seconds(found.pods, found.claims),
        *orphans(found),
        *collided(found.database),
    ]


# --- nothing lost


def faulty_answers(asked: Iterable[Asked]) -> Iterator[str]:
    """Find server errors other than 503, and hostile requests that were accepted."""
    for request in asked:
        if request.status is not None and request.status >= 500 and request.status != 503:
            yield f"{told(request)} was answered {request.status}: {request.answer}"
        if request.verb == "hostile" and request.is_accepted:
            yield f"{told(request)} was not refused: {request.body}"


def lost(found: Records) -> Iterator[str]:
    """Find accepted requests without their row, event or audit entry, or without their final effect."""
    for request in found.asked:
        if request.is_accepted and (missing := missing_effect(request, found)):
            yield f"lost: {told(request)} was accepted, and {missing}"


def missing_effect(request: Asked, found: Records) -> str:
    made = str((request.answer or {}).get("id", "")) if isinstance(request.answer, dict) else ""
    match request.verb:
        case "launch" | "clone":
            return "" if made in found.workspaces else "there is no such workspace"
        case "start" | "stop" | "restart" if request.status == 202:
            actions = {"start": ("start",), "stop": ("stop",), "restart": ("restart", "start")}[request.verb]
            named = [f"workspace.{action}" for action in actions]
            return "" if audited(request, found.audit, named) else "no trail of it"
        case "extend" if request.status == 202:
            return "" if in_story(request, found, "extended") else "its story does not tell it"
        case "book":
            return "" if made in {booking.id for booking in found.bookings} else "there is no such booking"
        case "cancel booking":
            is_kept = any(b.id == request.body["booking"] and b.cancelled_at is None for b in found.bookings)
            return "it is kept" if is_kept else ""
        case "change" if "name" in request.body:
            return "" if was_named(request, found) else "it never had that name"
        case "delete":
            workspace = found.workspaces[request.workspace]
            if workspace.deleted_at is None:
                return f"it is there: {workspace.phase}, {workspace.message_code}"
            wanted_files_gone = request.status == 202 and request.body.get("delete_disk")
            return "its files were to go, and stay" if wanted_files_gone and not workspace.delete_disk else ""
    return ""


def within(request: Asked, at: datetime) -> bool:
    return request.answered is not None and request.sent <= at <= request.answered


def audited(request: Asked, audit: Iterable[Audited], actions: Sequence[str]) -> bool:
    return any(
        line.action in actions
        and (line.target, line.who) == (request.workspace, request.who)
        and within(request, line.at)
        for line in audit
    )


def in_story(request: Asked, found: Records, code: str) -> bool:
    return any(event.code == code and within(request, event.at) for event in found.events[request.workspace])


def was_named(request: Asked, found: Records) -> bool:
    """Return True if the workspace had the name at a moment between request and answer."""
    name = str(request.body["name"])
    renamings = [event for event in found.events[request.workspace] if event.code == "renamed"]
    first = renamings[0].data["old"] if renamings else found.workspaces[request.workspace].name
    before = [str(e.data["new"]) for e in renamings if e.at < request.sent]
    during = [str(e.data["new"]) for e in renamings if within(request, e.at)]
    return name in [before[-1] if before else first, *during]


def done_twice(found: Records) -> Iterator[str]:
    """Find rivals that both won, keys with two answers, and launches with two audit entries."""
    rivals, keys = defaultdict[str, list[Asked]](list), defaultdict[str, list[Asked]](list)
    for request in found.asked:
        if request.is_accepted and request.rivals:
            rivals[request.rivals].append(request)
        if request.is_accepted and request.key:
            keys[request.key].append(request)
    for name, won in rivals.items():
        if len(won) > 1:
            yield f"twice: {len(won)} requests of {name} were accepted, of which one could be"
    for same in keys.values():
        if len({str(request.answer) for request in same}) > 1:
            yield f"twice: {told(same[0])} was repeated with its key, and answered otherwise"
    launched = [line.target for line in found.audit if line.action == "workspace.launch"]
    for twice in {target for target in launched if launched.count(target) > 1 and target}:
        yield f"twice: workspace {twice} was launched {launched.count(twice)} times"


WISHES = {
    "launch": "running",
    "start": "running",
    "restart": "running",
    "stop": "stopped",
    "delete": "deleted",
}
# Events that explain why a workspace is not as its person last requested.
WHY_NOT = {"given_up", "stopped_by_budget_spent", "stopped_by_lifetime", "refused_again"}


def unfulfilled(found: Records) -> Iterator[str]:
    """Find workspaces at rest whose desired state is not the last request, unless the story says why."""
    for workspace in found.workspaces.values():
        wishes = [line for line in found.audit if line.target == workspace.id and verb_of(line) in WISHES]
        last = max(wishes, key=lambda line: line.at, default=None)
        if last is None:
            yield f"lost: nobody is on record as having launched {workspace.id}"
            continue
        why_not = any(e.code in WHY_NOT and e.at >= last.at for e in found.events[workspace.id])
        if workspace.desired != WISHES[verb_of(last)] and not (workspace.desired == "stopped" and why_not):
            yield f"lost: {last.who} wished {last.action} of {workspace.id}, which is to be {workspace.desired}"


def wrong_keys(found: Records) -> Iterator[str]:
    """Find ready workspaces at rest whose SSH keys are not those of their person.

    A Secret deleted by hand is made again only for the next run.
    """
    for workspace in found.workspaces.values():
        begun = [c.admitted_at for c in found.claims if c.holder == workspace.id and c.admitted_at]
        deleted = found.secrets_deleted.get(workspace.id)
        if workspace.id not in found.let_in and deleted and begun and deleted > max(begun):
            continue
        wanted, there = found.ssh_keys.get(workspace.owner, set()), found.let_in.get(workspace.id, set())
        if workspace.phase == "ready" and workspace.deleted_at is None and there != wanted:
            yield f"lost: {workspace.id} lets {len(there)} keys in, {workspace.owner} has {len(wanted)} others"


def verb_of(line: Audited) -> str:
    room, _, verb = line.action.partition(".")
    return verb if room == "workspace" else ""


# --- nothing double


def doubles(lived: Iterable[Lived], pods: Iterable[PodLife]) -> Iterator[str]:
    """Find two PVCs of one part, or pods of a workspace at the same moment."""
    kinds = defaultdict[tuple[str, str, str], list[Lived]](list)
    for one in lived:
        kinds[one.kind, one.workspace, one.part].append(one)
    for (kind, workspace, part), all_of_it in kinds.items():
        all_of_it.sort(key=lambda one: one.began)
        for one, following in pairwise(all_of_it):
            if one.ended is None or following.began < one.ended:
                name = f"{kind} {part}".strip()
                yield f"double: workspace {workspace} had {name} {one.uid} and {following.uid} at once"
    by_workspace = defaultdict[str, list[PodLife]](list)
    for pod in pods:
        by_workspace[pod.workspace].append(pod)
    for workspace, its_pods in by_workspace.items():
        its_pods.sort(key=lambda pod: (pod.created, pod.seen_first or pod.created))
        for pod, later in pairwise(its_pods):
            if pod.seen_last is None or (later.seen_first is not None and later.seen_first < pod.seen_last):
                yield f"double: workspace {workspace} had pods {pod.uid} and {later.uid} at once"


def overlapping(claims: Iterable[Claim]) -> Iterator[str]:
    for claim, later in pairwise(sorted(held(claims), key=lambda claim: (claim.holder, begun(claim)))):
        if claim.holder == later.holder and (claim.released_at is None or begun(later) < claim.released_at):
            yield f"double: claims {claim.id} and {later.id} of {claim.holder} overlap"


def given_twice(claims: Iterable[Claim], pool_units: Mapping[str, int]) -> Iterator[str]:
    """Find pools that had given out more units at a moment than their nodes have."""
    for pool, most in pool_units.items():
        of_pool = [claim for claim in held(claims) if claim.pool == pool]
        moments = [(begun(c), c.released_at, c.units) for c in of_pool]
        for at, used in peaks(moments):
            if used > most:
                yield f"double: at {at} pool {pool} had given {used} units of {most}"
                break


def placed_twice(pods: Iterable[PodLife], node_units: Mapping[str, int]) -> Iterator[str]:
    """Find nodes whose pods had more units at a moment than the node has."""
    for node, most in node_units.items():
        moments = [(pod.seen_placed, pod.seen_last, pod.units) for pod in pods if pod.node == node]
        for at, used in peaks(moments):
            if used > most:
                yield f"double: at {at} the pods on {node} had {used} units of {most}"
                break


# --- bookings


def overbooked(bookings: Sequence[Booking], pool_units: Mapping[str, int]) -> Iterator[str]:
    """Find bookings that did not fit beside the bookings that existed then."""
    for booking in bookings:
        beside = [b for b in bookings if b.pool == booking.pool and was_there(b, booking.created_at)]
        amounts = [(b.starts_at, b.ends_at, b.places * b.units_each) for b in [booking, *beside]]
        most = max(used for _at, used in peaks(amounts))
        if most > pool_units[booking.pool]:
            yield f"double: booking {booking.id} made {most} units of {booking.pool} booked at once"


def was_there(booking: Booking, at: datetime) -> bool:
    return booking.created_at < at and (booking.cancelled_at is None or booking.cancelled_at > at)


def beside_bookings(claims: Iterable[Claim], bookings: Iterable[Booking]) -> Iterator[str]:
    """Find booked places with a run of another tenant or pool, or too large, and bookings with too many runs."""
    for booking in bookings:
        runs = [claim for claim in held(claims) if claim.booking == booking.id]
        for run in runs:
            whose = (run.pool, run.tenant) == (booking.pool, booking.tenant)
            if not whose or run.units > booking.units_each:
                yield f"double: claim {run.id} has a place of booking {booking.id}, which is not its own"
        used = max((used for _at, used in peaks((begun(r), r.released_at, 1) for r in runs)), default=0)
        if used > booking.places:
            yield f"double: {used} runs had the {booking.places} places of booking {booking.id} at once"


# --- no gaps


def gaps(found: Records) -> Iterator[str]:
    for workspace in found.workspaces.values():
        numbers = [event.number for event in found.events[workspace.id]]
        if numbers != list(range(1, workspace.last_event + 1)):
            yield f"gap: the story of {workspace.id} has {numbers}, and its row says {workspace.last_event}"
        for run, told_of_run in by_run(found.events[workspace.id]).items():
            steps = [event.step for event in told_of_run if event.level == "info" and event.step]
            if len(steps) != len(set(steps)):
                yield f"gap: run {run} of {workspace.id} told a step twice: {steps}"


def misheard(heard: Iterable[Heard], events: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    """Find sockets whose events are not those of the rows, in order: all if they stayed, else the first ones."""
    for ear in heard:
        rows = [(event.number, event.code) for event in events[ear.workspace]]
        got = [(event["id"], event["code"]) for event in ear.events]
        expected = rows if ear.stayed and ear.refused is None else rows[: len(got)]
        if got != expected:
            yield (
                f"misheard: {ear.who} at {ear.workspace} over {ear.connections} connections heard {got[-3:]} "
                f"as the last of {len(got)}, the rows are {len(rows)}"
            )


# Constraints that may decide between two requests at once. Locks must prevent all other collisions.
MAY_BE_MET = ("one_workspace_of_a_name_per_person_and_tenant", "one_idempotency_key_per_person")


def collided(errors: Iterable[str]) -> Iterator[str]:
    """Find deadlocks and violated constraints: concurrent writes that locks should have kept apart."""
    for error in errors:
        line, _, _ = error.partition("\n")
        if "deadlock detected" in line:
            yield f"collided: {error}"
        if "violates" in line and not any(name in line for name in MAY_BE_MET):
            yield f"collided: {error}"


# --- every claim accounted to the second


def unaccounted(claims: Iterable[Claim]) -> Iterator[str]:
    for claim in claims:
        if claim.state != "released" or claim.released_at is None:
            yield f"claim {claim.id} of {claim.holder} is {claim.state}, and nothing runs any more"
        elif claim.released_at < (claim.admitted_at or claim.created_at):
            yield f"claim {claim.id} of {claim.holder} was released before it began"


def untold(claims: Iterable[Claim], events: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    """Find claims and stories that disagree: each claim is a run with its steps inside and its end reported."""
    known = {claim.id: claim for claim in claims}
    for claim in known.values():
        story = by_run(events.get(claim.holder, [])).get(claim.id, [])
        for fault in disagreements(claim, story):
            yield f"claim {claim.id} of {claim.holder}: {fault}"
    for holder, story_of in events.items():
        for run in by_run(story_of):
            if run not in known:
                yield f"run {run} of {holder} is told, and no claim is there for it"


def disagreements(claim: Claim, story: Sequence[Event]) -> Iterator[str]:
    codes = {event.code for event in story}
    if not codes & {"requested", "restart_requested", "waits_again"}:
        yield "it is not told as a run"
    # A run that ended before its admission has no event of the admission.
    if (claim.admitted_at is not None) != ("admitted" in codes) and not codes & ENDED_EARLY:
        yield "its row and its story disagree whether it was let in"
    for event in story:
        if event.code in STEPS_OF_A_RUN and not lies_within(event.at, claim):
            yield f"{event.code} at {event.at} lies outside of it"
        if event.code == "stopped" and not is_told_with_release(event.at, claim):
            yield f"it was released at {claim.released_at}, and told as stopped at {event.at}"


def is_told_with_release(at: datetime, claim: Claim) -> bool:
    released = claim.released_at
    return released is not None and abs(at - released) <= LONGEST_TRANSACTION  # one transaction writes both


ENDED_EARLY = {"stop_requested", "delete_requested", "stopped_by_budget_spent", "stopped_by_lifetime"}
STEPS_OF_A_RUN = {
    "admitted", "disk_done", "container_done", "scheduled_done", "image_done",
    "mounts_done", "started_done", "endpoint_done", "ready",
}  # fmt: skip


def lies_within(at: datetime, claim: Claim) -> bool:
    return claim.admitted_at is not None and begun(claim) <= at <= (claim.released_at or at)


def outside(pods: Iterable[PodLife], claims: Iterable[Claim]) -> Iterator[str]:
    """Find pods outside of their run's claim in time, or with other units."""
    known = {claim.id: claim for claim in claims}
    for pod in pods:
        claim = known.get(pod.run)
        if claim is None or claim.admitted_at is None or claim.holder != pod.workspace:
            yield f"pod {pod.uid} of {pod.workspace} ran without a claim"
            continue
        if pod.units != claim.units:
            yield f"pod {pod.uid} of {pod.workspace} had {pod.units} units, its claim {claim.units}"
        if pod.created + SECOND <= begun(claim):
            yield f"pod {pod.uid} was there at {pod.created}, its claim since {begun(claim)}"
        if pod.finished and claim.released_at and pod.finished > claim.released_at:
            yield f"pod {pod.uid} ended at {pod.finished}, its claim at {claim.released_at}"


def unequal_seconds(pods: Sequence[PodLife], claims: Iterable[Claim]) -> Iterator[str]:
    """Compare the unit-seconds of the cluster's pods with those of their claims in the same time."""
    known = {claim.id: claim for claim in held(claims)}
    by_cluster = by_claims = 0.0
    for pod in pods:
        if pod.finished is None:
            continue
        by_cluster += pod.units * (pod.finished - pod.created).total_seconds()
        if claim := known.get(pod.run):
            began = max(pod.created, begun(claim).replace(microsecond=0))
            ended = min(pod.finished, claim.released_at or pod.finished)
            by_claims += claim.units * max(0.0, (ended - began).total_seconds())
    if by_cluster != by_claims:
        yield f"the cluster's pods took {by_cluster} seconds of units, claims were held for {by_claims} of them"


# --- no orphans


def orphans(found: Records) -> Iterator[str]:
    """Find objects left once all is stopped, except data that nobody asked to delete."""
    for kind, workspace, name in found.left:
        row = found.workspaces.get(workspace)
        if row is None:
            yield f"orphan: {kind} {name} is of a workspace that no row knows"
        elif kind == "Pod" or (kind != KEPT and row.deleted_at is not None):
            yield f"orphan: {kind} {name} is left, its workspace is {row.phase} ({row.message_code})"
        elif row.deleted_at is not None and row.delete_disk:
            yield f"orphan: {kind} {name} was to go with its workspace {row.id}"


def told(request: Asked) -> str:
    return f"{request.who}'s {request.verb} {request.workspace} at {request.sent:%H:%M:%S.%f}"
