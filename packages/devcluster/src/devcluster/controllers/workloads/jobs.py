"""Jobs: pods that must succeed a number of times; each end is counted exactly once.

A pod keeps a finalizer until its end is counted: first its uid is written to the Job's status, then the finalizer is
removed, then the count grows. An interrupted count continues from where it stopped.
"""

from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.workloads.backoff import Backoff
from devcluster.controllers.workloads.base import WorkloadController, pod_from
from devcluster.controllers.workloads.job_rules import (
    COMPLETIONS_REACHED,
    FINALIZER,
    INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED,
    Failures,
    Look,
    condition,
    end_of,
    failed,
    failures_in_a_row,
    finished_at,
    index_failures,
    index_of,
    is_complete,
    is_indexed,
    is_suspended,
    judge,
    number,
    pending_indexes,
    seconds_of_backoff,
    seconds_to_deadline,
    spelled,
    superfluous,
    tracked,
    verdict,
    waits_for_failed,
    wanted_active,
)
from devcluster.controllers.workloads.ownership import Key, controller_of, key_of
from devcluster.controllers.workloads.replicas import (
    active,
    condition_of,
    going,
    in_order_of_removal,
    phase,
    ready,
    terminating,
    without_condition,
)
from devcluster.errors import ApiError
from devcluster.resources import JOB, POD, Obj
from devcluster.store import Change, clone
from devcluster.values.clock import age_seconds, now

AT_ONCE = 50
"""Pods made, removed or counted before others get their turn."""


class JobController(WorkloadController):
    kind = JOB
    component = "job-controller"

    def __init__(self, api: Api):
        super().__init__(api)
        self.backoff = Backoff(1.0, 60.0)
        self._failures: dict[str, Failures] = {}
        """By uid."""

    def keys(self, change: Change) -> list[Key]:
        found = list(super().keys(change))
        if change.kind is POD and tracked(change.obj) and not controller_of(change.obj):
            found.append((change.obj["metadata"]["namespace"], ""))  # its Job released it
        return found

    async def reconcile(self, key: Key) -> float | None:
        job = self.api.store.get(JOB, *key)
        self._release_strays(key, job)
        if job is None:
            self.backoff.forget(key)
            return None
        if end := end_of(job):
            self._failures.pop(job["metadata"]["uid"], None)
            return self._expire(job, end)
        return self._advance(key, job)

    def _release_strays(self, key: Key, job: Obj | None) -> None:
        """Stop counting pods of a Job that is over or gone."""
        pods = self.parts.named(JOB, key) if key[1] else self.parts.orphans(key[0])
        counted_still = job["metadata"]["uid"] if job and not end_of(job) else ""
        for pod in pods:
            if tracked(pod) and (controller_of(pod) or {}).get("uid") != counted_still:
                self._release(pod)

    def _release(self, pod: Obj) -> None:
        def change(obj: Obj) -> Obj:
            obj["metadata"]["finalizers"] = [
                f for f in obj["metadata"].get("finalizers", []) if f != FINALIZER
            ]
            return obj

        self.api.update(POD, *key_of(pod), change, Writer(CONTROLLER))

    def _expire(self, job: Obj, end: Obj) -> float | None:
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is None or going(job):
            return None
        left = float(lifetime - age_seconds(end["lastTransitionTime"]))
        if left <= 0:
            self.api.try_delete(JOB, job, propagation="Foreground")
        return max(left, 0.05)

    def _advance(self, key: Key, job: Obj) -> float | None:
        status = clone(job["status"])
        if not is_suspended(job):
            status.setdefault("startTime", now())
        look = Look(job | {"status": status}, self.claim(job))
        target, again = verdict(look), None
        if target:
            for pod in look.active:
                self.remove_pod(job, pod)
        elif not going(job):
            again = self._manage(key, look)
            look.pods = self.parts.of(JOB, job)
        if target is None and is_complete(look):
            target = condition("SuccessCriteriaMet", *COMPLETIONS_REACHED)
        if target is None and not going(job):
            self._note_suspension(job, status)
        self._track(look, status, target)
        deadline = seconds_to_deadline(job | {"status": status})
        return min((s for s in (again, deadline) if s), default=None)

    # --- Pods

    def _manage(self, key: Key, look: Look) -> float | None:
        """Remove superfluous pods, or else create missing ones. Return the seconds to wait before a retry, or None."""
        wanted, extra = wanted_active(look), superfluous(look)
        rest = in_order_of_removal([p for p in look.active if p not in extra], [])
        extra += rest[: max(len(look.active) - wanted - len(extra), 0)]
        if extra:
            for pod in extra[:AT_ONCE]:
                self._release(pod)  # so that its deletion does not count as a failure
                self.remove_pod(look.job, pod)
            return None
        held_back = sum(map(terminating, look.pods)) if waits_for_failed(look.job) else 0
        missing = wanted - held_back - len(look.active)
        if missing <= 0 or is_suspended(look.job):
            return None
        if look.per_index is None and (wait := self._backoff_seconds(look)):
            return wait
        return self._make(key, look, min(missing, AT_ONCE))

    def _backoff_seconds(self, look: Look) -> float:
        return seconds_of_backoff(*failures_in_a_row(self._failures_of(look.job), look))

    def _failures_of(self, job: Obj) -> Failures:
        return self._failures.get(job["metadata"]["uid"], (0, None))

    def _make(self, key: Key, look: Look, missing: int) -> float | None:
        pods: list[Obj]
        if is_indexed(look.job):
            waits = {n: _index_backoff_seconds(look, n) for n in pending_indexes(look)[:missing]}
            pods = [indexed_pod(look, n) for n, wait in waits.items() if not wait]
            if not pods:
                return min(waits.values(), default=None)
        else:
            pods = [_tracked_pod(look.job) for _ in range(missing)]
        for pod in pods:
            try:
                self.make_pod(look.job, pod)
            except ApiError:
                return None if self.emptying(look.job) else self.backoff.failed(key)
        self.backoff.forget(key)
        return None

    # --- Status

    def _note_suspension(self, job: Obj, status: Obj) -> None:
        suspended, old = is_suspended(job), condition_of(job, "Suspended")
        if (old["status"] == "True" if old else False) == suspended:
            return
        word = "Suspended" if suspended else "Resumed"
        message = f"Job {word.lower()}"
        told = condition("Suspended", f"Job{word}", message, str(suspended))
        status["conditions"] = [*without_condition(status.get("conditions", []), "Suspended"), told]
        status.pop("startTime", None)
        if not suspended:
            status["startTime"] = now()
        self.events.event(JOB, job, "Normal", word, message)

    def _track(self, look: Look, status: Obj, target: Obj | None) -> None:
        """Count ended pods, remove their finalizers, and set the Job's final condition once no pod is left."""
        job = look.job
        uncounted = status.setdefault("uncountedTerminatedPods", {})
        waiting = {p["metadata"]["uid"] for p in look.pods if tracked(p)}
        settle(status, waiting)
        released = []
        for pod in [p for p in look.pods if tracked(p) and _is_over(look, p, target)][: 10 * AT_ONCE]:
            released.append(pod)
            if name := _counted_as(look, pod, target):
                uids = uncounted.setdefault(name, [])
                if pod["metadata"]["uid"] not in uids:
                    uids.append(pod["metadata"]["uid"])
        if is_indexed(job):
            status |= {"succeeded": len(look.done), "completedIndexes": spelled(look.done)}
            if look.per_index is not None:
                status["failedIndexes"] = spelled(look.failed_indexes)
        if target and not condition_of({"status": status}, target["type"]):
            status["conditions"] = [*status.get("conditions", []), target]
        self._write(job, status)
        self._failures[job["metadata"]["uid"]] = failures_in_a_row(self._failures_of(job), look)
        for pod in released:
            self._release(pod)
        settle(status, waiting - {p["metadata"]["uid"] for p in released})
        pods = self.parts.of(JOB, job)
        if target and not uncounted and not any(map(terminating, pods)) and not any(map(active, pods)):
            self._finish(job, status, target)
        else:
            self._write(job, status)

    def _finish(self, job: Obj, status: Obj, target: Obj) -> None:
        good = target["type"] == "SuccessCriteriaMet"
        end = condition("Complete" if good else "Failed", target["reason"], target["message"])
        status["conditions"] = [*status.get("conditions", []), end]
        if good:
            status["completionTime"] = end["lastTransitionTime"]
        self._write(job, status)
        if good:
            self.events.event(JOB, job, "Normal", "Completed", "Job completed")
        else:
            self.events.event(JOB, job, "Warning", end["reason"], end["message"])

    def _write(self, job: Obj, status: Obj) -> None:
        pods = self.parts.of(JOB, job)
        working = [p for p in pods if active(p)]
        status |= {"active": len(working), "ready": sum(map(ready, working))}
        status |= {"terminating": sum(map(terminating, pods))}
        for name in ("active", "succeeded", "failed", "completedIndexes"):
            if not status.get(name):
                status.pop(name, None)
        self.api.set_status(JOB, job, status)


def settle(status: Obj, waiting: set[str]) -> None:
    """Count the listed pods whose finalizer is gone."""
    uncounted = status["uncountedTerminatedPods"]
    for name in ("succeeded", "failed"):
        uids = uncounted.pop(name, [])
        left = [uid for uid in uids if uid in waiting]
        status[name] = status.get(name, 0) + len(uids) - len(left)
        if left:
            uncounted[name] = left


def _is_over(look: Look, pod: Obj, target: Obj | None) -> bool:
    """Return True if the pod's end can be counted: no retry needs it."""
    if target or going(look.job) or phase(pod) == "Succeeded":
        return True
    held = {p["metadata"]["uid"] for p in look.held.values()}
    return failed(look.job, pod) and pod["metadata"]["uid"] not in held


def _counted_as(look: Look, pod: Obj, target: Obj | None) -> str:
    """Return the status list for the pod's uid; empty if its end does not count, or only its index does."""
    job = look.job
    if phase(pod) == "Succeeded":
        return "" if is_indexed(job) else "succeeded"
    lost = target is not None and target["type"] != "SuccessCriteriaMet"
    if not failed(job, pod) and not lost:
        return ""
    if is_indexed(job) and index_of(job, pod) is None:
        return ""
    return "failed" if judge(job, pod).counts else ""


def _index_backoff_seconds(look: Look, index: int) -> float:
    last = look.held.get(index)
    return seconds_of_backoff(index_failures(last) + 1, finished_at(last)) if last else 0.0


def _tracked_pod(job: Obj) -> Obj:
    pod = pod_from(JOB, job, job["spec"]["template"])
    finalizers = pod["metadata"].get("finalizers", [])
    pod["metadata"]["finalizers"] = [*finalizers, *([FINALIZER] if FINALIZER not in finalizers else [])]
    return pod


def indexed_pod(look: Look, index: int) -> Obj:
    """Return the pod of an index, which stands in an annotation, a label, an environment variable and the hostname."""
    job = look.job
    name = f"{job['metadata']['name']}-{index}"
    pod = _tracked_pod(job)
    meta, spec = pod["metadata"], pod["spec"]
    meta["generateName"] = f"{name}-"
    meta["labels"] = meta.get("labels", {}) | {INDEX: str(index)}
    meta["annotations"] = meta.get("annotations", {}) | {INDEX: str(index)}
    if look.per_index is not None:
        meta["annotations"] |= _failure_counts(job, look.held.get(index))
    spec["hostname"] = name
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        if not any(v["name"] == variable["name"] for v in container.get("env", [])):
            container["env"] = [*container.get("env", []), clone(variable)]
    return pod


def _failure_counts(job: Obj, replaced: Obj | None) -> dict[str, str]:
    if replaced is None:
        return {INDEX_FAILURES: "0"}
    counts = judge(job, replaced).counts
    failures, ignored = (
        number(replaced, INDEX_FAILURES) + counts,
        number(replaced, INDEX_IGNORED) + (not counts),
    )
    return {INDEX_FAILURES: str(failures)} | ({INDEX_IGNORED: str(ignored)} if ignored else {})
