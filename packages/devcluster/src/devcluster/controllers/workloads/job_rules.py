"""Decisions on Jobs: complete, failed, or in need of pods. Pure; times are those of the pods' containers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from devcluster.controllers.workloads.replicas import (
    active,
    condition_of,
    ended,
    phase,
    ready,
    restarts,
    terminating,
)
from devcluster.resources import Obj
from devcluster.values.clock import age_seconds, now, parse

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 10.0, 600.0


# --- Indexes


def indexes_in(text: str, completions: int) -> set[int]:
    """Return `0-2,5` as numbers, without those from `completions` on."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def spelled(indexes: Iterable[int]) -> str:
    """Return numbers as `0-2,5`; a run of two is written `1,2`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    parts = (f"{a}" if a == b else f"{a}{',' if b == a + 1 else '-'}{b}" for a, b in runs)
    return ",".join(parts)


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"]["completionMode"] == "Indexed")


def index_of(job: Obj, pod: Obj) -> int | None:
    """Return the index of a pod, or None if it has none of the Job's."""
    text = annotation(pod, INDEX)
    return int(text) if text.isdigit() and int(text) < job["spec"]["completions"] else None


def annotation(obj: Obj, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def number(pod: Obj, name: str) -> int:
    text = annotation(pod, name)
    return int(text) if text.isdigit() else 0


def index_failures(pod: Obj) -> int:
    """Return how often this pod's index had failed before, counted or ignored."""
    return number(pod, INDEX_FAILURES) + number(pod, INDEX_IGNORED)


# --- Pods


def tracked(pod: Obj) -> bool:
    """Return True if the pod's end is not counted yet."""
    return FINALIZER in pod["metadata"].get("finalizers", [])


def waits_for_failed(job: Obj) -> bool:
    """Return True if a pod that is being deleted is replaced only once it is gone."""
    return bool(job["spec"]["podReplacementPolicy"] == "Failed")


def failed(job: Obj, pod: Obj) -> bool:
    return phase(pod) == "Failed" or (not waits_for_failed(job) and terminating(pod))


def finished_at(pod: Obj) -> datetime:
    containers = pod.get("status", {}).get("containerStatuses", [])
    ends = [(c.get("state", {}).get("terminated") or {}).get("finishedAt") for c in containers]
    if ends and all(ends):
        return max(parse(str(end)) for end in ends)
    found = condition_of(pod, "Ready")
    if found and found["status"] == "False" and found.get("lastTransitionTime"):
        return parse(found["lastTransitionTime"])
    meta = pod["metadata"]
    if "deletionTimestamp" in meta:
        return parse(meta["deletionTimestamp"]) - timedelta(
            seconds=meta.get("deletionGracePeriodSeconds") or 0
        )
    return parse(meta["creationTimestamp"])


@dataclass(frozen=True)
class Judgement:
    """Result of the pod failure policy for a failed pod."""

    counts: bool = True
    fails_index: bool = False
    fails_job: str = ""
    """Why it fails the whole Job."""


def judge(job: Obj, pod: Obj) -> Judgement:
    for n, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules", [])):
        why = _match(rule, pod)
        if why is None:
            continue
        if rule["action"] == "FailJob":
            return Judgement(fails_job=f"{why} matching FailJob rule at index {n}")
        return Judgement(counts=rule["action"] != "Ignore", fails_index=rule["action"] == "FailIndex")
    return Judgement()


def _match(rule: Obj, pod: Obj) -> str | None:
    meta, status = pod["metadata"], pod.get("status", {})
    name = f"{meta['namespace']}/{meta['name']}"
    if codes := rule.get("onExitCodes"):
        for container in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
            end = container.get("state", {}).get("terminated")
            if not end or not end["exitCode"] or codes.get("containerName") not in (None, container["name"]):
                continue
            if (end["exitCode"] in codes["values"]) == (codes["operator"] == "In"):
                return f"Container {container['name']} for pod {name} failed with exit code {end['exitCode']}"
        return None
    wanted = [(p["type"], p.get("status", "True")) for p in rule.get("onPodConditions", [])]
    for condition in status.get("conditions", []):
        if (condition["type"], condition["status"]) in wanted:
            return f"Pod {name} has condition {condition['type']}"
    return None


# --- The Job


def condition(name: str, reason: str, message: str, status: str = "True") -> Obj:
    times = {"lastProbeTime": now(), "lastTransitionTime": now()}
    return {"type": name, "status": status, **times, "reason": reason, "message": message}


def is_true(job: Obj, name: str) -> Obj | None:
    found = condition_of(job, name)
    return found if found and found["status"] == "True" else None


def end_of(job: Obj) -> Obj | None:
    """Return the condition that shows how the Job ended, if it did."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_suspended(job: Obj) -> bool:
    return bool(job["spec"].get("suspend"))


@dataclass
class Look:
    """Job and pods as one reconcile found them."""

    job: Obj
    pods: list[Obj]

    def __post_init__(self) -> None:
        job, status = self.job, self.job.get("status", {})
        completions = job["spec"].get("completions")
        counted = status.get("uncountedTerminatedPods", {})
        known = {*counted.get("succeeded", []), *counted.get("failed", [])}
        fresh = [p for p in self.pods if tracked(p) and p["metadata"]["uid"] not in known]
        if is_indexed(job):
            fresh = [p for p in fresh if index_of(job, p) is not None]
        self.active = [p for p in self.pods if active(p)]
        self.newly_succeeded = [p for p in fresh if phase(p) == "Succeeded"]
        self.newly_failed = [p for p in fresh if failed(job, p)]
        self.failed = status.get("failed", 0) + len(counted.get("failed", []))
        self.failed += sum(judge(job, p).counts for p in self.newly_failed)
        self.succeeded: int = status.get("succeeded", 0) + len(counted.get("succeeded", []))
        self.succeeded += len(self.newly_succeeded)
        self.done: set[int] = set()
        self.failed_indexes: set[int] = set()
        self.held: dict[int, Obj] = {}
        if is_indexed(job):
            self.done = indexes_in(status.get("completedIndexes", ""), completions)
            self.done |= {n for p in self.newly_succeeded if (n := index_of(job, p)) is not None}
            self.succeeded = len(self.done)
            if self.per_index is not None:
                self.failed_indexes = indexes_in(status.get("failedIndexes") or "", completions)
                self.failed_indexes |= self._newly_failed_indexes(self.per_index)
                self.held = self._held()

    @property
    def per_index(self) -> int | None:
        """Limit of failures per index, if there is one."""
        limit: int | None = self.job["spec"].get("backoffLimitPerIndex")
        return limit

    def _newly_failed_indexes(self, limit: int) -> set[int]:
        found = set()
        for pod in self.pods:
            index = index_of(self.job, pod)
            if index is not None and tracked(pod) and failed(self.job, pod):
                judged = judge(self.job, pod)
                if judged.fails_index or (judged.counts and number(pod, INDEX_FAILURES) >= limit):
                    found.add(index)
        return found

    def _held(self) -> dict[int, Obj]:
        """Return the last failed pod of each index to retry; it holds the failure count for the next pod."""
        settled = self.done | self.failed_indexes | {index_of(self.job, p) for p in self.active}
        held: dict[int, Obj] = {}
        for pod in sorted(self.pods, key=lambda p: (index_failures(p), finished_at(p))):
            index = index_of(self.job, pod)
            if index is not None and index not in settled and tracked(pod) and failed(self.job, pod):
                held[index] = pod
        return held


def verdict(look: Look) -> Obj | None:
    """Return the condition that decides the Job's end (FailureTarget or SuccessCriteriaMet), if any."""
    job = look.job
    if met := is_true(job, "SuccessCriteriaMet") or is_true(job, "FailureTarget"):
        return met
    if job["spec"].get("podFailurePolicy"):
        for pod in look.pods:
            if failed(job, pod) and (why := judge(job, pod).fails_job):
                return condition("FailureTarget", "PodFailurePolicy", why)
    return _failure(look) or _success_by_policy(look)


def _failure(look: Look) -> Obj | None:
    spec = look.job["spec"]
    if look.failed > spec["backoffLimit"] or _restarted_too_often(look):
        return _target("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if seconds_to_deadline(look.job) == 0:
        return _target("DeadlineExceeded", "Job was active longer than specified deadline")
    lost = len(look.failed_indexes)
    if lost > spec.get("maxFailedIndexes", lost):
        message = "Job has exceeded the specified maximal number of failed indexes"
        return _target("MaxFailedIndexesExceeded", message)
    if lost and lost + len(look.done) >= spec["completions"]:
        return _target("FailedIndexes", "Job has failed indexes")
    return None


def _target(reason: str, message: str) -> Obj:
    return condition("FailureTarget", reason, message)


def _restarted_too_often(look: Look) -> bool:
    """Return True if restarts in place reached the backoff limit."""
    spec = look.job["spec"]
    if spec["template"]["spec"]["restartPolicy"] != "OnFailure":
        return False
    times = sum(restarts(p) for p in look.pods if not ended(p))
    return bool(times >= max(spec["backoffLimit"], 1))


def _success_by_policy(look: Look) -> Obj | None:
    spec = look.job["spec"]
    rules = (spec.get("successPolicy") or {}).get("rules", []) if look.done else []
    for n, rule in enumerate(rules):
        wanted = indexes_in(rule.get("succeededIndexes") or "", spec["completions"])
        have = look.done & wanted if wanted else look.done
        enough = rule.get("succeededCount", len(wanted) if wanted else None)
        if enough is not None and len(have) >= enough:
            return condition("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {n}")
    return None


def is_complete(look: Look) -> bool:
    if any(active(p) for p in look.pods):
        return False
    completions: int = look.job["spec"].get("completions", 1)
    return look.succeeded >= completions


COMPLETIONS_REACHED = "CompletionsReached", "Reached expected number of succeeded pods"


def seconds_to_deadline(job: Obj) -> float | None:
    limit, start = job["spec"].get("activeDeadlineSeconds"), job.get("status", {}).get("startTime")
    if limit is None or start is None or is_suspended(job):
        return None
    return max(float(limit - age_seconds(start)), 0.0)


Failures = tuple[int, datetime | None]
"""How many in a row, and when the last was."""


def failures_in_a_row(before: Failures, look: Look) -> Failures:
    since = max(map(finished_at, look.newly_succeeded), default=None)
    fresh = [at for at in map(finished_at, look.newly_failed) if since is None or at > since]
    count, last = (0, None) if since else before
    return count + len(fresh), max(fresh, default=last)


def seconds_of_backoff(failures: int, last: datetime | None) -> float:
    """Return the seconds that a new pod must still wait after so many failures in a row."""
    if not failures or last is None:
        return 0.0
    delay = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_BACKOFF_SECONDS)
    return max(delay - age_seconds(last.isoformat()), 0.0)


def wanted_active(look: Look) -> int:
    spec = look.job["spec"]
    parallelism, completions = spec["parallelism"], spec.get("completions")
    if is_suspended(look.job):
        return 0
    if completions is None:
        return len(look.active) if look.succeeded else int(parallelism)
    return int(max(min(completions - look.succeeded, parallelism), 0))


def superfluous(look: Look) -> list[Obj]:
    """Return active pods whose index another pod has, or that have none."""
    if not is_indexed(look.job):
        return []
    taken: set[int] = set()
    found = []
    for pod in sorted(look.active, key=lambda p: (not ready(p), str(p["metadata"]["creationTimestamp"]))):
        index = index_of(look.job, pod)
        if index is None or index in taken:
            found.append(pod)
        else:
            taken.add(index)
    return found


def pending_indexes(look: Look) -> list[int]:
    busy = [p for p in look.pods if active(p) or (waits_for_failed(look.job) and terminating(p))]
    settled = look.done | look.failed_indexes | {index_of(look.job, p) for p in busy}
    return [n for n in range(look.job["spec"]["completions"]) if n not in settled]
