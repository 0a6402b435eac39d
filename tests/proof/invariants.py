"""Invariants of a running Berth at rest, whatever happened to it before.

`check(stack)` compares the rows with the cluster and returns sentences about what is wrong; none if all is well.
`hold(stack)` waits until nothing is wrong, because recent changes may still be under way.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.stack import Stack

Row = Mapping[str, Any]
Objects = Mapping[str, list[Row]]  # by kind

WAYS_IN = ("Service", "Secret")  # made at the first start, kept until the workspace is deleted
KINDS = (*WAYS_IN, "Pod")
CLAIM = "PersistentVolumeClaim"
STEPS = (
    "request",
    "admission",
    "disk",
    "container",
    "scheduled",
    "image",
    "mounts",
    "started",
    "endpoint",
    "ready",
)


@dataclass(frozen=True)
class World:
    """Rows and objects, read at about the same time."""

    workspaces: Sequence[Row]
    claims: Mapping[str, list[Row]]  # by workspace
    events: Mapping[str, list[Row]]  # by workspace, in order
    objects: Mapping[str, Objects]  # by workspace; "" for objects without one
    volumes: Sequence[Row]  # each with the name of its PVC, and the workspaces that mount it
    volume_claims: Mapping[str, Row]  # by name


def hold(stack: Stack, within_seconds: float = 30, only: Collection[str] | None = None) -> None:
    """Wait until nothing is wrong; fail the test if anything still is after `within_seconds`."""
    deadline = time.monotonic() + within_seconds
    while wrong := check(stack, only):
        assert time.monotonic() < deadline, "\n".join(wrong)
        time.sleep(0.3)


def check(stack: Stack, only: Collection[str] | None = None) -> list[str]:
    """Return what is wrong with the workspaces `only` (ids), or with all and with objects that belong to none."""
    world = read(stack)
    wrong = [
        f"{workspace['name']}: {sentence}"
        for workspace in world.workspaces
        if only is None or str(workspace["id"]) in only
        for sentence in about(workspace, world)
    ]
    return wrong if only is not None else [*wrong, *about_all(world)]


def read(stack: Stack) -> World:
    workspaces = stack.rows("SELECT * FROM workspaces_workspace ORDER BY created_at")
    claims, events = defaultdict[str, list[Row]](list), defaultdict[str, list[Row]](list)
    for claim in stack.rows(
        "SELECT c.*, p.resource_name, (SELECT COALESCE(SUM(microseconds), 0) FROM quotas_ledgerentry"
        " WHERE claim_id = c.id) AS microseconds FROM quotas_claim c JOIN quotas_pool p ON p.id = c.pool_id"
        " WHERE holder_kind = 'workspace' ORDER BY c.created_at"
    ):
        claims[str(claim["holder_id"])].append(claim)
    for event in stack.rows("SELECT * FROM workspaces_event ORDER BY workspace_id, number"):
        events[str(event["workspace_id"])].append(event)
    volumes = stack.rows(
        "SELECT v.*, COALESCE(NULLIF(claim_name, ''), 'vol-' || v.id) AS claim, ARRAY("
        "SELECT holder::text FROM storage_mount WHERE volume_id = v.id) AS holders FROM storage_volume v"
    )
    ours = labels_of(stack)
    volume_claims = {body["metadata"]["name"]: body for body in stack.in_cluster(CLAIM, **ours)}
    return World(workspaces, claims, events, objects_by_workspace(stack, ours), volumes, volume_claims)


def labels_of(stack: Stack) -> dict[str, str]:
    """Labels of all that this installation makes."""
    installation = stack.rows("SELECT id FROM clusters_installation")[0]["id"]
    return {"app.kubernetes.io/managed-by": "berth", "berth.dev/instance": str(installation)}


def objects_by_workspace(stack: Stack, ours: dict[str, str]) -> Mapping[str, Objects]:
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: {kind: [] for kind in KINDS})
    for kind in KINDS:
        for body in stack.in_cluster(kind, **ours):
            found[body["metadata"]["labels"].get("berth.dev/workspace", "")][kind].append(body)
    return found


# --- one workspace


def about(workspace: Row, world: World) -> Iterator[str]:
    pk = str(workspace["id"])
    objects = world.objects.get(pk, {kind: [] for kind in KINDS})
    yield from about_phase(workspace)
    yield from about_objects(workspace, objects)
    yield from about_volumes(workspace, world)
    yield from about_claims(workspace, world.claims.get(pk, []), objects["Pod"])
    yield from about_ledger(world.claims.get(pk, []))
    yield from about_story(workspace, world.events.get(pk, []))


def about_phase(workspace: Row) -> Iterator[str]:
    """Check for rest: ready, stopped, failed with a code, deleted or queued, and no reconcile due."""
    phase = workspace["phase"]
    if workspace["deleted_at"] is None and phase not in ("ready", "stopped", "failed", "waiting"):
        yield f"is {phase}, which is no rest ({workspace['message_code']})"
    if phase == "failed" and not (workspace["failure"] or {}).get("code"):
        yield "failed without a code"
    if workspace["ending"]:
        yield f"its run is still being ended ({workspace['ending']})"
    if workspace["dirty_since"] is not None:
        yield f"its mark of {workspace['dirty_since']:%H:%M:%S} is not answered"
    wanted = {"ready": "running", "waiting": "running", "stopped": "stopped", "failed": "stopped"}
    desired = "deleted" if workspace["deleted_at"] else wanted.get(phase)
    if desired and workspace["desired"] != desired:
        yield f"is {phase} and wanted {workspace['desired']}"


def about_objects(workspace: Row, objects: Objects) -> Iterator[str]:
    """Check that a ready workspace has one object per kind, the pod made by its run; any other has no pod, and none at
    all once it is deleted."""
    for kind in (*WAYS_IN, "Pod"):
        there = objects[kind]
        may_stay = kind in WAYS_IN and workspace["deleted_at"] is None
        most, least = is_ready(workspace) or may_stay, is_ready(workspace)
        if not least <= len(there) <= most:
            yield f"has {len(there)} {kind}, not {int(most)}: {', '.join(names(there))}"
        for body in there:
            if body["metadata"].get("deletionTimestamp"):
                yield f"its {kind} {body['metadata']['name']} is still being deleted"
    for pod in objects["Pod"]:
        if (run := pod["metadata"]["labels"].get("berth.dev/run")) != str(workspace["run"]):
            yield f"its pod is of run {run}, not of {workspace['run']}"
        if is_ready(workspace) and not pod_ready(pod):
            yield f"is ready and its pod is not ({pod.get('status', {}).get('phase')})"


def about_volumes(workspace: Row, world: World) -> Iterator[str]:
    """Check home and disk: there from the first run on, until their person has them deleted."""
    pk = str(workspace["id"])
    mounted = [volume for volume in world.volumes if pk in volume["holders"]]
    if workspace["deleted_at"] is not None and mounted:
        yield f"is deleted, and mounts {', '.join(volume['name'] for volume in mounted)}"
    kinds = sorted(volume["kind"] for volume in mounted)
    if is_ready(workspace) and kinds != (["disk", "home"] if workspace["disk_mib"] else ["home"]):
        yield f"mounts {', '.join(kinds) or 'nothing'}"
    for volume in world.volumes:
        if volume not in mounted and str(volume["made_for"]) != pk:
            continue
        there = world.volume_claims.get(volume["claim"])
        if volume["bin_until"] is None and volume["bound_to"] and there is None:
            yield f"lost what is kept: {volume['claim']}"
        if volume["bin_until"] is not None and (there or volume["deleted_at"] is None):
            yield f"was deleted with its files, and {volume['claim']} is left"
        if there and there["metadata"].get("deletionTimestamp"):
            yield f"its volume claim {volume['claim']} is still being deleted"


def about_claims(workspace: Row, claims: list[Row], pods: list[Row]) -> Iterator[str]:
    """Check that a ready workspace's claim equals its pod, a queued one's waits, and others have none."""
    live = [claim for claim in claims if claim["state"] != "released"]
    state = {"ready": "admitted", "waiting": "waiting"}.get(workspace["phase"])
    wanted = [state] if state and workspace["deleted_at"] is None else []
    if [claim["state"] for claim in live] != wanted:
        yield f"has the live claims {[claim['state'] for claim in live]}, not {wanted}"
    for claim in live:
        if claim["id"] != workspace["run"]:
            yield f"its live claim {claim['id']} is not its run {workspace['run']}"
        if claim["end_unproven_since"] is not None:
            yield "the end of its pod is in doubt"
        held = sum(units(pod, claim["resource_name"]) for pod in pods)
        if claim["state"] == "admitted" and claim["resource_name"] and held != claim["units"]:
            yield f"its claim is of {claim['units']} units, and its pods hold {held}"
    if again := [
        claim["id"] for claim in claims if claim["state"] == "released" and not claim["released_at"]
    ]:
        yield f"claims were released at no time: {again}"


def about_ledger(claims: list[Row]) -> Iterator[str]:
    """Check that the ledger has each claim's time once: up to its release, or to `settled_until` while it runs."""
    for claim in claims:
        begin, end = claim["admitted_at"], claim["released_at"] or claim["settled_until"]
        held = max(end - begin, timedelta(0)) // timedelta(microseconds=1) if begin and end else 0
        if held != (found := claim["microseconds"]):
            yield f"its {claim['state']} claim {claim['id']} was held for {held} µs, and the ledger has {found}"


def about_story(workspace: Row, events: list[Row]) -> Iterator[str]:
    """Check that events are numbered without a gap, and each step of a run is reported once and in order."""
    numbers = [event["number"] for event in events]
    if numbers != list(range(1, workspace["last_event"] + 1)):
        yield f"its events are {numbers}, and the last is {workspace['last_event']}"
    told = defaultdict(list)
    for event in events:
        if event["step"] and event["level"] == "info":
            told[event["run"]].append(event["step"])
    for run, steps in told.items():
        if steps != list(STEPS[: len(steps)]):
            yield f"run {run} told its steps as {', '.join(steps)}"
    if is_ready(workspace) and len(told[workspace["run"]]) != len(STEPS):
        yield f"is ready and told only {', '.join(told[workspace['run']]) or 'nothing'}"


# --- all of it


def about_all(world: World) -> Iterator[str]:
    yield from about_strangers(world)
    yield from about_units(world)


def about_strangers(world: World) -> Iterator[str]:
    """Report objects in the cluster that belong to no row."""
    known = {str(workspace["id"]) for workspace in world.workspaces}
    for workspace in world.objects.keys() - known:
        for kind, there in world.objects[workspace].items():
            yield from (f"{kind} {name} belongs to no row" for name in names(there))
    of_rows = {volume["claim"] for volume in world.volumes if volume["deleted_at"] is None}
    yield from (f"{CLAIM} {name} belongs to no row" for name in world.volume_claims.keys() - of_rows)


def about_units(world: World) -> Iterator[str]:
    """Check that admitted claims and pods hold the same units in total."""
    claimed = Counter[str]()
    for claim in chain.from_iterable(world.claims.values()):
        if claim["state"] == "admitted" and claim["resource_name"]:
            claimed[claim["resource_name"]] += claim["units"]
    pods = [pod for objects in world.objects.values() for pod in objects["Pod"]]
    for resource, wanted in claimed.items():
        held = sum(units(pod, resource) for pod in pods)
        if held != wanted:
            yield f"claims are of {wanted} {resource} in all, and pods hold {held}"


# --- helpers


def is_ready(workspace: Row) -> bool:
    return workspace["phase"] == "ready" and workspace["deleted_at"] is None


def names(objects: list[Row]) -> list[str]:
    return [body["metadata"]["name"] for body in objects]


def pod_ready(pod: Row) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def units(pod: Row, resource: str) -> int:
    """Units of an extended resource that the pod requests."""
    containers = pod["spec"]["containers"]
    return sum(int(c.get("resources", {}).get("requests", {}).get(resource, 0)) for c in containers)
