"""Write down what happens to an attempt: its pods, its troubles, its end, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from clusters.causes.cause import Diagnosis
from clusters.models import Gpu, Node
from clusters.pods.ends import end_proven
from jobs import enqueue, story
from jobs.changing import Level, add_event, changing
from jobs.models import SETTLED, UP, Attempt, Desired, Ending, Job, Part, PartPhase
from jobs.runs.ends import End, Result, reason_of, tail_of, terminated
from quotas import admission
from quotas.models import Claim
from workloads import devices
from workloads.pods.status import Object, index_of
from workloads.pods.troubles import Trouble

from . import parts, publishing


def note_pods(attempt: Attempt, pods: Sequence[Object]) -> None:
    """Record the pods that were seen, before anything is done to them. One that vanished keeps its place."""
    members = {key: dict(one) for key, one in attempt.members.items()}
    for pod in sorted(pods, key=end_proven, reverse=True):  # a running pod last
        key, uid = str(index_of(pod)), pod["metadata"]["uid"]
        before = members.get(key)
        if before is None or before["uid"] == uid or before["ended"]:
            members[key] = member(pod, before)
    unended = [one for one in members.values() if not one["ended"]]
    if len(unended) < len(members):  # some fail because of a node that is out of order, and may be well soon
        for one in unended:
            one["out_code"] = one["out_code"] or out_of_order(attempt.part.job, one["node"])
    if members == attempt.members:
        return
    attempt.members = members
    attempt.node = members.get("0", {}).get("node") or attempt.node
    attempt.save(update_fields=["members", "node"])


def member(pod: Object, before: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is kept of a pod: where it is, and how it ended."""
    return {
        "uid": pod["metadata"]["uid"],
        "node": pod["spec"].get("nodeName", ""),
        "ended": end_proven(pod),
        "exit_code": terminated(pod).get("exitCode"),
        "reason": reason_of(pod),
        "out_code": before["out_code"] if before else "",
    }


def vanished(attempt: Attempt, pods: Sequence[Object]) -> bool:
    """Return True if a pod whose end is not proven is not among these any more."""
    there = {pod["metadata"]["uid"] for pod in pods}
    return any(not one["ended"] and one["uid"] not in there for one in attempt.members.values())


def note_last(attempt: Attempt, pods: Sequence[Object]) -> None:
    """Keep what the end of an attempt shows: the last lines of its output if it failed, its GPUs and their use."""
    attempt.tail = tail_of(pods)
    had = devices.of([attempt.run]).get(attempt.run, devices.NONE)
    attempt.gpus, attempt.gpu_use_percent = list(had.uuids), had.use_percent
    attempt.save(update_fields=["tail", "gpus", "gpu_use_percent"])


def request_more(job: Job) -> None:
    """Put parts into the queue that had to stay out of it."""
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            parts.request_next(row)


def begin_running(job: Job, attempt: Attempt) -> None:
    part = attempt.part
    if part.phase == PartPhase.RUNNING:
        return
    with changing(job.pk) as row:
        now = row.parts.get(pk=part.pk)
        if now.run != attempt.run or now.phase != PartPhase.STARTING:
            return
        attempt.started_at = timezone.now()
        attempt.save(update_fields=["started_at"])
        now.phase = PartPhase.RUNNING
        now.save(update_fields=["phase"])
        nodes = story.spelled(attempt.nodes)
        add_event(row, "running", run=attempt.run, index=part.index, attempt=attempt.number, node=nodes)
        parts.show(row)


def note_trouble(attempt: Attempt, found: Trouble | None) -> datetime | None:
    """Record what keeps an attempt from starting. Return since when; None: nothing does."""
    code = found.diagnosis.code if found else ""
    if attempt.reason != code:
        attempt.reason, attempt.data = code, found.diagnosis.data if found else {}
        attempt.trouble_since = timezone.now() if found else None
        attempt.save(update_fields=["reason", "data", "trouble_since"])
    return attempt.trouble_since


def show_troubles(job: Job, present: Iterable[Attempt], refusal: Diagnosis | None = None) -> None:
    """Show the troubles of a job's present attempts, with an event for each code that is new."""
    found = {one.reason: one.data for one in present if one.trouble_since is not None}
    if refusal is not None:
        found[refusal.code] = refusal.data
    if found.keys() == job.troubles.keys():
        return
    with changing(job.pk) as row:
        if row.desired != Desired.DONE or row.ended_at is not None or found.keys() == row.troubles.keys():
            return
        now = timezone.now().isoformat()
        for code in found.keys() - row.troubles.keys():
            add_event(row, code, level=Level.WARNING, **found[code])
        row.troubles = {code: row.troubles.get(code, now) for code in sorted(found)}
        job.troubles = row.troubles  # a refusal later in this look compares with it
        if found:
            code = min(row.troubles, key=row.troubles.__getitem__)
            row.message_code, row.message_data = code, found[code]
        else:
            parts.show(row)


def give_up(job: Job, attempt: Attempt, why: Diagnosis, *, fails: bool) -> None:
    """Take an attempt down that does not start: its part fails, or goes back to the queue."""
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            part = row.parts.get(pk=attempt.part_id)
            if part.run != attempt.run or part.phase not in UP:
                return
            attempt.reason, attempt.data, attempt.trouble_since = why.code, why.data, None
            attempt.save(update_fields=["reason", "data", "trouble_since"])
            parts.end(row, part, Ending.FAILED if fails else Ending.REQUEUE)
    enqueue.look([job.pk])


def pod_vanished(job: Job, attempt: Attempt) -> None:
    """Report once that the end is unproven. Its process may still run, so the units stay reserved.

    Its other pods are ended: without it they do nothing.
    """
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        if not admission.flag_unproven_end(attempt.run):
            return
        with changing(job.pk) as row:
            part = row.parts.get(pk=attempt.part_id)
            if job.nodes > 1 and part.run == attempt.run and part.phase in UP:
                parts.end(row, part, Ending.AGAIN)
            row.message_code, row.message_data = "end_unproven", {}
            add_event(row, "end_unproven", run=attempt.run, level=Level.ERROR, index=part.index)
    enqueue.look([job.pk])


def finish(job: Job, attempt: Attempt, end: End) -> None:
    """Write the proven end of an attempt, and give its claim back, or on to the part's next attempt."""
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        claim = Claim.objects.filter(pk=attempt.run, state=Claim.State.ADMITTED).first()
        with changing(job.pk) as row:
            part = row.parts.get(pk=attempt.part_id)
            if claim is None or part.run != attempt.run:
                return
            end = _as_it_counts(row, part, attempt, end)
            _note_end(attempt, end)
            _go_on(row, part, claim, attempt, end)
            publishing.publish(row)
            parts.request_next(row)
            parts.show(row)


def _as_it_counts(job: Job, part: Part, attempt: Attempt, end: End) -> End:
    """Return the end with its reason: what Berth ended itself, and what the node is to blame for, is not counted."""
    if end.result == Result.SUCCEEDED:
        return end
    match part.ending:
        case Ending.FAILED:
            return End(Result.FINAL, attempt.reason, end.exit_code, attempt.data)
        case Ending.REQUEUE:
            return End(Result.REQUEUE, attempt.reason, end.exit_code, attempt.data)
        case Ending.CANCEL | Ending.RECLAIM | Ending.AGAIN:
            return End(Result.AGAIN, f"ended_by_{part.ending}", end.exit_code)
    if end.result == Result.FAILED and (unwell := unwell_node(job, attempt)):
        node, code = unwell
        return End(Result.AGAIN, "node_was_unwell", end.exit_code, {"node": node, "cause": code})
    if end.result == Result.FAILED and part.failures >= job.retries:
        return End(Result.FINAL, end.code, end.exit_code, end.data)
    return end


def unwell_node(job: Job, attempt: Attempt) -> tuple[str, str] | None:
    """Return the first of the attempt's nodes that is or was out of order, and why; None: none is."""
    for one in attempt.members.values():
        if code := one["out_code"] or out_of_order(job, one["node"]):
            return one["node"], code
    return None


def out_of_order(job: Job, node: str) -> str:
    """Return why the node, or a GPU on it, is out of order; empty: it is not."""
    cluster = job.pool.cluster_id
    row = Node.objects.filter(cluster=cluster, name=node).first()
    gpu = Gpu.objects.filter(cluster=cluster, node=node).exclude(out_code="").first() if job.units else None
    return (row and (row.out_code or row.gpus_out_code)) or (gpu.out_code if gpu else "")


def _note_end(attempt: Attempt, end: End) -> None:
    attempt.exit_code, attempt.reason, attempt.data = end.exit_code, end.code, end.data
    attempt.counted = end.result in (Result.FAILED, Result.FINAL)
    attempt.members = {key: one | {"ended": True} for key, one in attempt.members.items()}
    attempt.trouble_since, attempt.ended_at = None, timezone.now()
    fields = ["exit_code", "reason", "data", "trouble_since", "counted", "members", "ended_at"]
    attempt.save(update_fields=fields)


def end_confirmed(job: Job, attempt: Attempt) -> None:
    """Let a part go on whose pod vanished, as an admin released its claim. Inside `changing`."""
    part = job.parts.get(pk=attempt.part_id)
    if part.run != attempt.run or part.phase in SETTLED:
        return
    _note_end(attempt, _as_it_counts(job, part, attempt, End(Result.AGAIN, "end_confirmed")))
    match part.ending:
        case Ending.FAILED:
            part.phase = PartPhase.FAILED
            parts.fail(job, attempt.reason, {**attempt.data, "index": part.index}, attempt.recorded_run)
        case Ending.CANCEL:
            part.phase = PartPhase.CANCELLED
        case _:
            part.phase = PartPhase.PENDING
    part.ending = ""
    part.save(update_fields=["phase", "ending"])
    add_event(job, "end_confirmed", run=attempt.run, index=part.index, attempt=attempt.number)
    parts.request_next(job)
    parts.show(job)


def _go_on(job: Job, part: Part, claim: Claim, attempt: Attempt, end: End) -> None:
    about: dict[str, Any] = {"index": part.index, "attempt": attempt.number, **end.data}
    if end.result == Result.SUCCEEDED:
        _settle(part, PartPhase.SUCCEEDED, claim, "succeeded")
        add_event(job, "part_succeeded", run=attempt.run, **about)
    elif part.ending == Ending.CANCEL:
        _settle(part, PartPhase.CANCELLED, claim, "cancelled")
    elif end.result == Result.FINAL:
        _settle(part, PartPhase.FAILED, claim, "failed")
        parts.fail(job, end.code, {**end.data, "index": part.index}, attempt.recorded_run)
        add_event(job, end.code, run=attempt.run, level=Level.ERROR, **about)
    else:
        add_event(job, end.code, run=attempt.run, level=Level.WARNING, **about)
        part.failures += end.result == Result.FAILED
        if part.ending == Ending.RECLAIM:
            successor = admission.give_back(claim)
        else:
            successor = admission.send_back(claim, end.code, dict(end.data))
        part.phase, part.ending, part.run = PartPhase.WAITING, "", successor.pk
        part.save(update_fields=["failures", "phase", "ending", "run"])


def _settle(part: Part, phase: PartPhase, claim: Claim, reason: str) -> None:
    part.phase, part.ending = phase, ""
    part.save(update_fields=["phase", "ending"])
    admission.release(claim.pk, reason)
