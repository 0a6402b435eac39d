"""Bring an admitted run up: create what is missing, look, record the progress. Steps 3 to 10 of a launch."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from clusters.api import Api
from clusters.causes.cause import Diagnosis
from clusters.errors import ClusterRefused
from clusters.labels import RUN
from clusters.unknown_causes import count, digest_of
from quotas import admission
from quotas.models import Claim
from workspaces import enqueue
from workspaces.cluster import drivers, manifests, observe
from workspaces.cluster.digest import HASH
from workspaces.cluster.look import look_at_storage, look_closely, read_trouble_details
from workspaces.cluster.namespaces import ensure_tenant
from workspaces.cluster.observe import (
    DELETED,
    Blocked,
    Object,
    Observation,
    Outcome,
    Snapshot,
    Trouble,
    explain_trouble,
)
from workspaces.cluster.proof import note_pods, remove_finalizer
from workspaces.cluster.repair import restore_labels, restore_pod
from workspaces.cluster.volumes import alert_deleted, free_for, keep_data, make_claim
from workspaces.cluster.wanted import Wanted, wanted_of
from workspaces.models import NO_DEADLINE, STEPS, Ending, Event, Phase, Step, Workspace
from workspaces.state import runs
from workspaces.state.live import changing
from workspaces.state.story import add_event
from workspaces.state.transitions import Move, move

from . import conditions, lifetime

# A run that is interrupted again and again is not restarted for ever.
MOST_INTERRUPTIONS = 3
INTERRUPTIONS_WITHIN = timedelta(minutes=10)
# Unexplained messages with an event each: a message that is worded anew at every look must not add events for ever.
MOST_UNEXPLAINED = 10


def bring_up(workspace: Workspace, claim: Claim, api: Api) -> None:
    """Run one pass: apply what is missing or differs, then record what is seen."""
    wanted = wanted_of(workspace, claim)
    seen = restore_pod(look_closely(workspace, api), wanted, api)
    seen, in_the_way = make(wanted, seen, api)
    seen = set_aside_earlier(seen, workspace, api)
    keep_data(workspace, seen.volume_claims, api)
    alert_deleted(workspace, seen.volume_claims)
    if not note_pods(workspace, seen.pods):
        pod_vanished(workspace)
        return
    release_rejected(seen, api)
    observation = observe.observe(
        read_trouble_details(workspace, seen, api),
        run=str(claim.pk),
        claims_wanted=len(manifests.volume_claims(wanted)),
        node_address=wanted.cluster.node_address,
    )
    if record(workspace, observation, in_the_way or observation.trouble):
        enqueue.reconcile([workspace.pk])


# --- make what is missing


def make(wanted: Wanted, seen: Snapshot, api: Api) -> tuple[Snapshot, Trouble | None]:
    """Apply what is missing, in the order of the steps. A refusal ends this and is returned, explained.

    The answer of an apply replaces the object seen before: nothing is read twice.
    """
    if (out := node_out(wanted, seen)) is not None:
        return seen, out
    try:
        ensure_tenant(wanted.workspace.tenant, wanted.cluster, wanted.instance, api)
        make_driver_volume(wanted, api)
        seen = make_volume_claims(wanted, seen, api)
        seen = make_container(wanted, seen, api)
    except Blocked as blocked:
        return seen, blocked.trouble
    except ClusterRefused as refusal:
        return seen, refused(refusal)
    return seen, None


def node_out(wanted: Wanted, seen: Snapshot) -> Trouble | None:
    """Return a trouble that requeues the run if its node became unwell before the start: the pod would wait in vain,
    and the queue knows when that node, or another, has room."""
    code = wanted.unwell_nodes.get(wanted.node)
    has_begun = observe.started_set(seen.stateful_set, str(wanted.run)) or any(
        observe.is_of(str(wanted.run), pod) for pod in seen.pods
    )
    if code is None or has_begun:
        return None
    return Trouble(Diagnosis(code, {"node": wanted.node}), Outcome.REQUEUE)


# Refusals that pass without help, when other pods end or a namespace is gone. Any other refusal is final.
PASSING_REFUSALS = ("exceeded quota", "being terminated", "object is being deleted")


def refused(refusal: ClusterRefused) -> Trouble:
    if refusal.status == 409 or any(words in refusal.message for words in PASSING_REFUSALS):
        return explain_trouble("admission", refusal.message, Outcome.REQUEUE, 120)
    return explain_trouble("admission", refusal.message, Outcome.FAIL)


def make_driver_volume(wanted: Wanted, api: Api) -> None:
    """Create the driver's volume and PVC in a pool of old nodes. Without them, the pod would not be scheduled."""
    if not wanted.mounts_driver or wanted.workspace.ready_at is not None:
        return
    volume, claim = drivers.objects(wanted.workspace.pool, wanted.workspace.tenant, wanted.instance)
    name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
    there = api.get("PersistentVolumeClaim", namespace, name)
    if there is not None and there.get("status", {}).get("phase") == "Bound":
        return
    reference = api.apply(volume)["spec"].get("claimRef", {})
    if there is None and reference.get("uid"):  # its PVC was deleted
        free_for(name, namespace, volume["metadata"]["name"], api)
    api.apply(claim)


def make_volume_claims(wanted: Wanted, seen: Snapshot, api: Api) -> Snapshot:
    """Create missing PVCs. Existing PVCs hold data and are not applied again; only their labels are repaired."""
    claims = {claim["metadata"]["name"]: claim for claim in seen.volume_claims}
    for body in manifests.volume_claims(wanted):
        name = body["metadata"]["name"]
        if name in claims:
            claims[name] = restore_labels(claims[name], body["metadata"]["labels"], api)
        else:
            claims[name] = make_claim(wanted.workspace, body, api)
    return replace(seen, volume_claims=list(claims.values()))


def make_container(wanted: Wanted, seen: Snapshot, api: Api) -> Snapshot:
    """Apply the StatefulSet first, so that it can own the other objects."""
    there = seen.stateful_set or first_set(wanted, seen, api)
    if there is None:
        return seen
    metadata = there["metadata"]
    if metadata.get("deletionTimestamp"):
        return seen  # an apply would succeed and be lost; the watch reports the end
    # Left by an earlier run: its pod must not pass for this run's.
    if observe.run_of(there) != str(wanted.run):
        api.delete(
            "StatefulSet", wanted.namespace, wanted.name, uid=metadata["uid"], propagation="Foreground"
        )
        return seen
    there = restore_labels(there, {**wanted.labels, RUN: str(wanted.run)}, api)
    service = apply_if_differs(manifests.service(wanted, there), seen.service, api)
    secret = api.get("Secret", wanted.namespace, wanted.name) if seen.stateful_set else None
    apply_if_differs(manifests.secret(wanted, there), secret, api)
    seen = replace(seen, stateful_set=there, service=service)
    if not observe.started_set(there, str(wanted.run)):
        return start_container(wanted, there, seen, api)
    if wanted.workspace.ready_at is None:  # a run that was ready keeps its start script
        script = api.get("ConfigMap", wanted.namespace, wanted.name)
        apply_if_differs(manifests.config_map(wanted, there), script, api)
    return seen


def first_set(wanted: Wanted, seen: Snapshot, api: Api) -> Object | None:
    """Create the StatefulSet with no replicas. If a pod of a deleted set still runs, adopt it, or wait for its end."""
    if any(observe.is_of(str(wanted.run), pod) and not observe.going(pod) for pod in seen.pods):
        return api.apply(manifests.stateful_set(wanted, replicas=1))
    if seen.pods:
        return None
    api.try_create(manifests.trial_pod(wanted))
    return api.apply(manifests.stateful_set(wanted, replicas=0))


def start_container(wanted: Wanted, there: Object, seen: Snapshot, api: Api) -> Snapshot:
    """Create the pod once there is storage. Volumes are set to Retain before a pod can write to them."""
    api.apply(manifests.stamped(manifests.config_map(wanted, there)))
    seen = look_at_storage(wanted.workspace, seen, api)
    keep_data(wanted.workspace, seen.volume_claims, api)
    if not all(observe.accepted(claim, seen.binding_modes) for claim in seen.volume_claims):
        return seen
    body = manifests.stateful_set(wanted, replicas=1)
    # With its uid, a set that was deleted meanwhile is not created again without its other objects.
    body["metadata"]["uid"] = there["metadata"]["uid"]
    return replace(seen, stateful_set=api.apply(body))


def apply_if_differs(body: dict[str, Any], there: Object | None, api: Api) -> Object:
    """Apply the object if its digest differs. Return the object as it is in the cluster now."""
    wanted = manifests.stamped(body)
    digest = wanted["metadata"]["annotations"][HASH]
    if there is None or there["metadata"].get("annotations", {}).get(HASH) != digest:
        return api.apply(wanted)
    return restore_labels(there, wanted["metadata"]["labels"], api)


def set_aside_earlier(seen: Snapshot, workspace: Workspace, api: Api) -> Snapshot:
    """Delete or release pods of earlier runs. Return the state without them: they say nothing about this run."""
    mine = [pod for pod in seen.pods if observe.is_of(str(workspace.run), pod)]
    for pod in seen.pods:
        metadata = pod["metadata"]
        if pod not in mine and observe.end_proven(pod):
            remove_finalizer(pod, api)
        elif pod not in mine and not metadata.get("deletionTimestamp"):
            api.delete("Pod", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return replace(seen, pods=mine)


def release_rejected(seen: Snapshot, api: Api) -> None:
    """Remove the finalizer of pods that never ran (their node rejected them), so that the controller tries another."""
    for pod in seen.pods:
        if observe.end_proven(pod) and (
            observe.rejected(pod) or (pod["metadata"].get("deletionTimestamp") and not observe.terminal(pod))
        ):
            remove_finalizer(pod, api)


# --- write how far it got


def record(workspace: Workspace, observation: Observation, trouble: Trouble | None) -> bool:
    """Write row and new events in one transaction. Return True if a run is to be taken down now."""
    with transaction.atomic():
        if observation.done == len(STEPS) and workspace.ready_at is None:
            admission.lock(workspace.pool.cluster_id)  # the run's clock starts, and the queue plans by it
        with changing(workspace.pk) as row:
            if row.run == workspace.run and not row.ending:  # else somebody ended this run meanwhile
                write_down(row, observation, trouble)
            return bool(row.ending)


def write_down(row: Workspace, observation: Observation, trouble: Trouble | None) -> None:
    """Record progress in the row. Steps never go back within a run."""
    if observation.ended and (trouble is None or trouble.outcome != Outcome.REQUEUE):
        ended_by_itself(row, observation)
        return
    add_step_events(row, observation)
    report_restart(row, observation)
    if observation.done == len(STEPS):
        become_ready(row, observation)
    elif trouble is not None:
        in_trouble(row, trouble, timezone.now())
    elif not row.ready_at:
        row.message_code, row.message_data = f"doing_{row.step}", {}


def add_step_events(row: Workspace, observation: Observation) -> None:
    """Add an event for each step with new evidence, in order."""
    row.node = observation.node or row.node
    first = STEPS.index(Step(row.step))
    if row.ready_at is not None:
        return
    for index in range(first, min(observation.done, len(STEPS) - 1)):
        add_event(
            row, f"{STEPS[index]}_done", step=STEPS[index], node=observation.node, host=observation.host
        )
        runs.advance(row)


def report_restart(row: Workspace, observation: Observation) -> None:
    """Report that the node restarted the container: files in the home remain, running programs are gone."""
    if observation.restarts <= row.container_restarts:
        return
    row.container_restarts = observation.restarts
    if (why := observation.last_end) is not None:
        warn(row, why.code, **why.data)
    warn(row, "container_restarted", times=observation.restarts)


def warn(row: Workspace, code: str, **data: Any) -> None:
    add_event(row, code, step=row.step, level=Event.Level.WARNING, **data)


def become_ready(row: Workspace, observation: Observation) -> None:
    row.host, row.jupyter_host = observation.host, observation.jupyter_host
    row.jupyter_port, row.ssh_port = observation.jupyter_port, observation.ssh_port
    if {"node_lost", "node_unwell"} & set(row.troubles):
        add_event(row, "node_back", node=row.node)
    row.troubles = {}
    row.message_code, row.message_data = conditions.message(row)
    if row.phase != Phase.READY:
        move(row, Move.BECOME_READY)
        if row.ready_at is None:
            row.ready_at = timezone.now()
            add_event(row, "ready", step=Step.READY)
            lifetime.begin(row)


def in_trouble(row: Workspace, trouble: Trouble, now: datetime) -> None:
    """Report a trouble once, when it appears. End the run when the trouble has lasted long enough."""
    diagnosis = trouble.diagnosis
    final = trouble.outcome != Outcome.WAIT
    name = name_of(diagnosis, row)
    if name not in row.troubles:
        at_once = trouble.outcome == Outcome.FAIL and not trouble.after_seconds
        level = Event.Level.ERROR if at_once else Event.Level.WARNING
        add_event(row, diagnosis.code, step=row.step, level=level, **diagnosis.data)
        if not diagnosis.known:
            count("start", diagnosis.data["raw"], row.pool.cluster_id)
    if not row.troubles.get(name):
        row.troubles = {**row.troubles, name: now.isoformat() if final else NO_DEADLINE}
    row.message_code, row.message_data = diagnosis.code, diagnosis.data
    # A trouble that fails a start at once does not end a run that was ready.
    if not final or (row.ready_at and not trouble.after_seconds):
        return
    # A container that crashes again and again shows one trouble in several forms: count from the first.
    since = min(datetime.fromisoformat(first_seen) for first_seen in row.troubles.values() if first_seen)
    if now - since < timedelta(seconds=trouble.after_seconds):
        return
    if trouble.outcome == Outcome.FAIL:
        fail(row, diagnosis, now)
    else:
        row.failure = {"code": diagnosis.code, "data": diagnosis.data, "at": now.isoformat()}
        warn(row, "sent_back")
        runs.end(row, Ending.REQUEUE)


def name_of(diagnosis: Diagnosis, row: Workspace) -> str:
    """Key of the trouble in the row. Unexplained messages share one code, so each kind gets its digest as well."""
    if diagnosis.known:
        return diagnosis.code
    name = f"{diagnosis.code}:{digest_of('start', diagnosis.data['raw'])[:16]}"
    unexplained = [other for other in row.troubles if other.startswith(f"{diagnosis.code}:")]
    return name if name in unexplained or len(unexplained) < MOST_UNEXPLAINED else diagnosis.code


def fail(row: Workspace, diagnosis: Diagnosis, now: datetime) -> None:
    """Give up the start: keep the reason and end the run. Its units come back when the end is proven."""
    row.failure = {"code": diagnosis.code, "data": diagnosis.data, "at": now.isoformat()}
    move(row, Move.WANT_STOPPED)
    add_event(row, "given_up", step=row.step, level=Event.Level.ERROR)
    row.message_code, row.message_data = diagnosis.code, diagnosis.data
    runs.end(row, Ending.FAILED)


def pod_vanished(workspace: Workspace) -> None:
    """End the run: its pod was removed by force and may still run, and a second pod beside it would share its disk."""
    with changing(workspace.pk) as row:
        if row.run == workspace.run and not row.ending:
            add_event(row, "interrupted", level=Event.Level.WARNING, reason="Vanished")
            runs.end(row, Ending.INTERRUPTED)


def ended_by_itself(row: Workspace, observation: Observation) -> None:
    """Handle a pod that ended unasked: begin a new run if it had been ready or was deleted, else fail the start."""
    data = {"reason": observation.ended}
    if (why := observation.explained_end) is not None:
        warn(row, why.code, **why.data)
    if row.ready_at is not None or observation.ended == DELETED:
        add_event(row, "interrupted", level=Event.Level.WARNING, **data)
        since = timezone.now() - INTERRUPTIONS_WITHIN
        if row.events.filter(code="interrupted", at__gt=since).count() > MOST_INTERRUPTIONS:
            fail(row, Diagnosis(code="interrupted_often", data=data, known=True), timezone.now())
        else:
            runs.end(row, Ending.INTERRUPTED)
    else:
        add_event(row, "ended_before_ready", step=row.step, level=Event.Level.ERROR, **data)
        fail(row, Diagnosis(code="ended_before_ready", data=data, known=True), timezone.now())
