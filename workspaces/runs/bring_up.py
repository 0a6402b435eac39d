"""Bring an admitted run up: create what is missing, look, record the progress. Steps 3 to 10 of a launch."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from clusters.causes.cause import Diagnosis
from clusters.errors import ClusterRefused
from clusters.labels import HASH
from clusters.mirror import Mirror
from clusters.storage.volumes import restore_labels
from clusters.unknown_causes import count, digest_of
from quotas import admission
from quotas.models import Claim
from quotas.namespaces import ensuring
from storage.cluster.look import hold
from storage.mounts import mounting
from workloads import failures
from workloads.pods.looking import binding_modes
from workloads.pods.making import make_driver_volume, refuse_image, refused
from workloads.pods.status import accepted, is_of
from workloads.pods.troubles import Blocked, Outcome, Snapshot, Trouble
from workloads.pods.wanted import Shared
from workspaces import enqueue, notices
from workspaces.cluster import manifests, observe
from workspaces.cluster.look import look_at
from workspaces.cluster.observe import Observation
from workspaces.cluster.proof import delete_pod, is_noted, note
from workspaces.cluster.repair import restore_pod
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


def bring_up(workspace: Workspace, claim: Claim, mirror: Mirror, shared: Shared) -> None:
    """Run one pass: make what is missing or differs, then record what is seen."""
    wanted = wanted_of(workspace, claim, shared)
    seen = restore_pod(look_at(workspace, wanted.own, mirror), wanted, mirror)
    in_the_way = None
    if not is_whole(wanted, seen):
        seen, in_the_way = make(wanted, seen, mirror, shared)
    seen = set_aside_earlier(seen, workspace, mirror)
    restore_secret(wanted, seen, mirror)
    observation = observe.observe(
        seen,
        run=str(claim.pk),
        claims_wanted=len(wanted.own),
        node_address=wanted.cluster.node_address,
    )
    trouble = in_the_way or deleted_volume(wanted) or observation.trouble
    if is_noted(workspace, seen.pods) and is_settled(workspace, observation, trouble):
        return
    if record(workspace, seen, observation, trouble):
        enqueue.reconcile([workspace.pk], urgent=True)


def deleted_volume(wanted: Wanted) -> Trouble | None:
    """Return the trouble of a run whose home or disk somebody deletes by hand: its data stays, and so does the run."""
    for volume in (one.volume for one in wanted.own):
        if volume.problem == "volume_deleted":
            data = {"claim": volume.object_name, "volume": volume.bound_to}
            return Trouble(Diagnosis("volume_deleted", data))
    return None


# --- make what is missing


def is_whole(wanted: Wanted, seen: Snapshot) -> bool:
    """Return True if the run has its objects, and nobody asked to compare them: then a look only takes note of
    progress."""
    run = str(wanted.run)
    return (
        wanted.workspace.dirty_since is None
        and seen.service is not None
        and not seen.service["metadata"].get("deletionTimestamp")
        and len(seen.volume_claims) >= len(wanted.own)
        and any(is_of(run, pod) for pod in seen.pods)
    )


def make(wanted: Wanted, seen: Snapshot, mirror: Mirror, shared: Shared) -> tuple[Snapshot, Trouble | None]:
    """Make what is missing, in the order of the steps. A refusal ends this and is returned, explained."""
    if (out := node_out(wanted, seen)) is not None:
        return seen, out
    try:
        ensuring.ensure(
            shared.tenant_objects(wanted.workspace.tenant, wanted.cluster), shared.instance, mirror
        )
        if wanted.workspace.ready_at is None:
            make_driver_volume(wanted, mirror)
        seen = make_volume_claims(wanted, seen, mirror)
        seen = make_ways_in(wanted, seen, mirror)
        seen = make_pod(wanted, seen, mirror)
    except Blocked as blocked:
        return seen, blocked.trouble
    except ensuring.NoNamespace as blocked:
        outcome = Outcome.WAIT if blocked.is_going else Outcome.FAIL
        return seen, Trouble(Diagnosis(blocked.code, {"namespace": blocked.namespace}), outcome)
    except ClusterRefused as refusal:
        return seen, refused(refusal)
    return seen, None


def node_out(wanted: Wanted, seen: Snapshot) -> Trouble | None:
    """Return a trouble that requeues the run if its node became unwell before the start: the pod would wait in vain,
    and the queue knows when that node, or another, has room."""
    code = wanted.unwell_nodes.get(wanted.node)
    has_begun = any(is_of(str(wanted.run), pod) for pod in seen.pods)
    if code is None or has_begun:
        return None
    return Trouble(Diagnosis(code, {"node": wanted.node}), Outcome.REQUEUE)


def make_volume_claims(wanted: Wanted, seen: Snapshot, mirror: Mirror) -> Snapshot:
    """Make the PVCs of home and disk, and keep what they are bound to before a pod can write to it."""
    held = (hold(one.volume, mirror, wanted.instance) for one in wanted.own)
    found = [claim for claim in held if claim is not None]
    return replace(seen, volume_claims=found, binding_modes=binding_modes(found, mirror))


def make_ways_in(wanted: Wanted, seen: Snapshot, mirror: Mirror) -> Snapshot:
    """Apply Secret and Service if one of them differs. A Service that is being deleted has no address to wait for."""
    body, there = manifests.service(wanted), seen.service
    if there is not None and there["metadata"].get("deletionTimestamp"):
        mirror.apply(manifests.secret(wanted))
        return replace(seen, service=None)
    digest = body["metadata"]["annotations"][HASH]
    if there is not None and there["metadata"].get("annotations", {}).get(HASH) == digest:
        return replace(seen, service=restore_labels(there, body["metadata"]["labels"], mirror))
    mirror.apply(manifests.secret(wanted))
    return replace(seen, service=mirror.apply(body))


def restore_secret(wanted: Wanted, seen: Snapshot, mirror: Mirror) -> None:
    """Apply the Secret again if the node says that it is gone: nobody watches Secrets."""
    said = f'secret "{wanted.name}" not found'
    if any(said in str(event.get("message", "")) for event in seen.events):
        mirror.apply(manifests.secret(wanted))


def make_pod(wanted: Wanted, seen: Snapshot, mirror: Mirror) -> Snapshot:
    """Create the pod once there is storage, and no earlier pod is left."""
    if seen.pods:
        return seen
    if (blocked := mounting.in_the_way(wanted.mounts, wanted.workspace.owner_id)) is not None:
        code, data, helps_to_wait = blocked
        raise Blocked(code, Outcome.WAIT if helps_to_wait else Outcome.FAIL, **data)
    refuse_image(wanted.workspace.image)
    if not all(accepted(claim, seen.binding_modes) for claim in seen.volume_claims):
        return seen
    files = manifests.start_files(wanted)
    if mirror.get("ConfigMap", wanted.namespace, files["metadata"]["name"]) is None:
        mirror.apply(files)
    try:
        pod = mirror.create(manifests.pod(wanted))
    except ClusterRefused as refusal:
        if refusal.reason != "AlreadyExists":
            raise
        there = mirror.api.get("Pod", wanted.namespace, wanted.name)
        if there is None or not is_of(str(wanted.run), there):
            return seen  # an earlier pod is still going
        pod = there
    return replace(seen, pods=[pod])


def set_aside_earlier(seen: Snapshot, workspace: Workspace, mirror: Mirror) -> Snapshot:
    """Delete or release pods of earlier runs. Return the state without them: they say nothing about this run."""
    mine = [pod for pod in seen.pods if is_of(str(workspace.run), pod)]
    for pod in seen.pods:
        if pod not in mine:
            delete_pod(pod, mirror)
    return replace(seen, pods=mine)


# --- write how far it got


def record(workspace: Workspace, seen: Snapshot, observation: Observation, trouble: Trouble | None) -> bool:
    """Write row and new events in one transaction. Return True if a run is to be taken down now."""
    with transaction.atomic():
        if observation.done == len(STEPS) and workspace.ready_at is None:
            admission.lock(workspace.pool.cluster_id)  # the run's clock starts, and the queue plans by it
        with changing(workspace.pk) as row:
            if row.run != workspace.run:
                return False
            is_seen = note(row, seen.pods)
            if not row.ending:  # else somebody ended this run meanwhile
                write_down(row, observation, trouble) if is_seen else pod_vanished(row)
            return bool(row.ending)


def is_settled(workspace: Workspace, observation: Observation, trouble: Trouble | None) -> bool:
    """Return True if the row already says all this of a run that is ready: most looks find nothing new."""
    return (
        trouble is None
        and workspace.phase == Phase.READY
        and observation.done == len(STEPS)
        and not observation.ended
        and not workspace.troubles
        and observation.restarts <= workspace.container_restarts
        and (workspace.message_code, workspace.message_data) == conditions.message(workspace)
        and (workspace.host, workspace.jupyter_host, workspace.jupyter_port, workspace.ssh_port)
        == (observation.host, observation.jupyter_host, observation.jupyter_port, observation.ssh_port)
    )


def write_down(row: Workspace, observation: Observation, trouble: Trouble | None) -> None:
    """Record progress in the row. Steps never go back within a run."""
    if observation.ended and (row.ready_at or trouble is None or trouble.outcome != Outcome.REQUEUE):
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
    runs.forget_troubles(row)
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
        event = add_event(row, diagnosis.code, step=row.step, level=level, **diagnosis.data)
        if not (row.troubles or row.ready_at or at_once or trouble.outcome == Outcome.REQUEUE):
            notices.notify_start_problem(event)
        if not diagnosis.known:
            count("start", diagnosis.data["raw"], row.pool.cluster_id)
    if not row.troubles.get(name):
        row.troubles = {**row.troubles, name: now.isoformat() if final else NO_DEADLINE}
        if diagnosis.code == "volume_formatting":
            mounting.alarm(row.pk, row.run, diagnosis.code, diagnosis.data)
    row.message_code, row.message_data = diagnosis.code, diagnosis.data
    row.trouble_since = row.trouble_since or now
    # A trouble that fails a start at once does not end a run that was ready.
    if not final or (row.ready_at and not trouble.after_seconds):
        row.gives_up_at = None
        return
    # A container that crashes again and again shows one trouble in several forms: count from the first.
    since = min(datetime.fromisoformat(first_seen) for first_seen in row.troubles.values() if first_seen)
    row.gives_up_at = since + timedelta(seconds=trouble.after_seconds)
    if now < row.gives_up_at:
        return
    if trouble.outcome == Outcome.FAIL:
        fail(row, diagnosis, now)
    else:
        has_node = {"node": row.node} if row.node else {}
        run = row.run if has_node else None
        row.failure = failures.failure(diagnosis.code, diagnosis.data, now, run)
        warn(row, "sent_back", **has_node)
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
    row.failure = failures.failure(diagnosis.code, diagnosis.data, now, row.run)
    move(row, Move.WANT_STOPPED)
    add_event(row, "given_up", step=row.step, level=Event.Level.ERROR)
    row.message_code, row.message_data = diagnosis.code, diagnosis.data
    runs.end(row, Ending.FAILED)


def pod_vanished(row: Workspace) -> None:
    """End the run: its pod was removed by force and may still run, and a second pod beside it would share its disk."""
    add_event(row, "interrupted", level=Event.Level.WARNING, reason="Vanished")
    runs.end(row, Ending.INTERRUPTED)


def ended_by_itself(row: Workspace, observation: Observation) -> None:
    """Handle a pod that ended unasked: begin a new run if it had been ready or was ended from outside, else fail the
    start."""
    data = {"reason": observation.ended}
    if (why := observation.explained_end) is not None:
        warn(row, why.code, **why.data)
    if row.ready_at is not None or observation.was_ended:
        add_event(row, "interrupted", level=Event.Level.WARNING, **data)
        since = timezone.now() - INTERRUPTIONS_WITHIN
        if (
            row.events.filter(code="interrupted", at__gt=since).count() >= MOST_INTERRUPTIONS
        ):  # before this one
            fail(row, Diagnosis(code="interrupted_often", data=data, known=True), timezone.now())
        else:
            runs.end(row, Ending.INTERRUPTED)
    else:
        add_event(row, "ended_before_ready", step=row.step, level=Event.Level.ERROR, **data)
        fail(row, Diagnosis(code="ended_before_ready", data=data, known=True), timezone.now())
