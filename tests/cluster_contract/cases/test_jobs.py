"""Jobs: how often their pods are tried, what counts as a failure, and how they end."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.cases.played import (
    conditions,
    end,
    events,
    own_node,
    remove,
    start,
    template,
    until_pods,
)

INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs:
    """Jobs of a case, whose pods the case simulates."""

    def __init__(self, kube: Kube, space: str, image: str):
        self.kube, self.space, self._image = kube, space, image
        self.path = space.replace("/api/v1", "/apis/batch/v1") + "/jobs"

    def create(
        self, name: str = "j", restart: str = "Never", node: str = "", finalizers: Any = None, **spec: Any
    ) -> Obj:
        place = {"nodeName": node} if node else {}
        body = {"template": template(self._image, restartPolicy=restart, **place), **spec}
        if finalizers:
            body["template"]["metadata"]["finalizers"] = finalizers
        return self.kube.create(self.path, {"metadata": {"name": name}, "spec": body})

    def pods(self, count: int, name: str = "j") -> list[Obj]:
        return until_pods(self.kube, self.space, count, **{"job-name": name})

    def end(self, pod: Obj, code: int = 0, **more: Any) -> None:
        end(self.kube, self.space, pod, code, **more)

    def until(self, condition: str, name: str = "j") -> Obj:
        found = self.kube.until(
            f"{self.path}/{name}", lambda o: conditions(o).get(condition, {}).get("status") == "True"
        )
        return dict(found)

    def status(self, name: str = "j", **wanted: Any) -> Obj:
        """Wait until these members of a Job's status are as wanted (None: absent), and return the status."""
        path = f"{self.path}/{name}"
        found = self.kube.until(path, lambda o: all(o["status"].get(k) == v for k, v in wanted.items()))
        return dict(found["status"])


@pytest.fixture
def jobs(kube: Kube, space: str, image: str) -> Jobs:
    return Jobs(kube, space, image)


def test_a_job_selects_its_pods_by_labels_that_it_is_given(jobs: Jobs) -> None:
    job = jobs.create()
    uid = job["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert (job["spec"]["completions"], job["spec"]["backoffLimit"]) == (1, 6)
    (pod,) = jobs.pods(1)
    assert pod["metadata"]["labels"] == labels
    assert pod["metadata"]["generateName"] == "j-"
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert events(jobs.kube, jobs.space, "j", "SuccessfulCreate") == [
        f"Created pod: {pod['metadata']['name']}"
    ]


def test_a_job_is_complete_once_its_pods_have_succeeded_and_their_ends_are_counted(jobs: Jobs) -> None:
    jobs.create(completions=2, parallelism=1)
    (first,) = jobs.pods(1)
    start(jobs.kube, jobs.space, first)
    assert jobs.status(ready=1)["active"] == 1
    jobs.end(first)
    (second,) = [p for p in jobs.pods(2) if p["metadata"]["name"] != first["metadata"]["name"]]
    jobs.end(second)
    found = jobs.until("Complete")
    told = [(c["type"], c["reason"], c["message"]) for c in found["status"]["conditions"]]
    why = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert told == [("SuccessCriteriaMet", *why), ("Complete", *why)]
    status = found["status"]
    assert (status["succeeded"], status["ready"], status["terminating"]) == (2, 0, 0)
    assert status["uncountedTerminatedPods"] == {} and status["completionTime"] and "active" not in status
    assert all("finalizers" not in p["metadata"] for p in jobs.pods(2))
    assert events(jobs.kube, jobs.space, "j", "Completed") == ["Job completed"]


def test_a_pod_of_an_indexed_job_knows_its_index(jobs: Jobs) -> None:
    jobs.create(completions=3, parallelism=2, completionMode="Indexed")
    pods = {p["metadata"]["annotations"][INDEX]: p for p in jobs.pods(2)}
    assert sorted(pods) == ["0", "1"]
    assert pods["1"]["metadata"]["labels"][INDEX] == "1"
    assert pods["1"]["metadata"]["generateName"] == "j-1-"
    assert pods["1"]["spec"]["hostname"] == "j-1"
    path = f"metadata.labels['{INDEX}']"
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}},
    }
    assert pods["1"]["spec"]["containers"][0]["env"] == [variable]


def test_completed_indexes_are_told_as_ranges(jobs: Jobs) -> None:
    jobs.create(completions=4, parallelism=4, completionMode="Indexed")
    pods = {p["metadata"]["annotations"][INDEX]: p for p in jobs.pods(4)}
    for index in ("0", "1", "3"):
        jobs.end(pods[index])
    jobs.status(completedIndexes="0,1,3", succeeded=3, active=1)
    jobs.end(pods["2"])
    assert jobs.until("Complete")["status"]["completedIndexes"] == "0-3"


def test_a_failed_pod_is_replaced_and_counted(jobs: Jobs) -> None:
    jobs.create(backoffLimit=3)
    (pod,) = jobs.pods(1)
    jobs.end(pod, 1, ago_seconds=60)  # so that no back-off is left
    pods = jobs.pods(2)
    jobs.status(failed=1, active=1)
    (replacement,) = [p for p in pods if p["metadata"]["name"] != pod["metadata"]["name"]]
    jobs.end(replacement)
    assert jobs.until("Complete")["status"]["failed"] == 1


def test_a_pod_that_has_just_failed_is_not_replaced_at_once(jobs: Jobs) -> None:
    jobs.create()
    (pod,) = jobs.pods(1)
    jobs.end(pod, 1)
    jobs.status(failed=1, active=None)
    assert len(jobs.pods(1)) == 1


def test_more_failures_than_the_back_off_limit_fail_the_job(jobs: Jobs) -> None:
    jobs.create(backoffLimit=0)
    (pod,) = jobs.pods(1)
    jobs.end(pod, 1)
    found = jobs.until("Failed")
    told = [(c["type"], c["reason"], c["message"]) for c in found["status"]["conditions"]]
    why = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert told == [("FailureTarget", *why), ("Failed", *why)]
    assert found["status"]["failed"] == 1
    assert events(jobs.kube, jobs.space, "j", "BackoffLimitExceeded") == [why[1]]


def test_a_failed_job_deletes_the_pods_that_still_run(jobs: Jobs) -> None:
    jobs.create(backoffLimit=0, completions=2, parallelism=2)
    failing, running = jobs.pods(2)
    start(jobs.kube, jobs.space, running)
    jobs.end(failing, 1)
    assert jobs.until("Failed")["status"]["failed"] == 2
    (left,) = jobs.pods(1)
    assert left["metadata"]["name"] == failing["metadata"]["name"]


@pytest.mark.parametrize(("code", "reason"), [(42, "PodFailurePolicy"), (1, "BackoffLimitExceeded")])
def test_an_exit_code_can_fail_the_job_at_once(jobs: Jobs, code: int, reason: str) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    jobs.create(backoffLimit=5 if code == 42 else 0, podFailurePolicy={"rules": [rule]})
    (pod,) = jobs.pods(1)
    jobs.end(pod, code)
    told = conditions(jobs.until("Failed"))["Failed"]
    assert told["reason"] == reason
    if code == 42:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        why = "failed with exit code 42 matching FailJob rule at index 0"
        assert told["message"] == f"Container main for pod {name} {why}"


def test_a_disruption_can_fail_the_job_at_once(jobs: Jobs) -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}
    jobs.create(backoffLimit=5, podFailurePolicy={"rules": [rule]})
    (pod,) = jobs.pods(1)
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    jobs.end(pod, 137, conditions=disrupted)
    told = conditions(jobs.until("Failed"))["Failed"]
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    why = "has condition DisruptionTarget matching FailJob rule at index 0"
    assert (told["reason"], told["message"]) == ("PodFailurePolicy", f"Pod {name} {why}")


def test_a_job_is_failed_only_once_the_pods_that_it_stops_have_ended(jobs: Jobs) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    counts: Obj = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 0}
    with own_node(jobs.kube) as node:
        jobs.create(node=node, podFailurePolicy={"rules": [rule]}, **counts)
        failing, *others = jobs.pods(3)
        for pod in others:
            start(jobs.kube, jobs.space, pod)
        jobs.end(failing, 1)
        jobs.until("FailureTarget")
        assert "Failed" not in conditions({"status": jobs.status(terminating=2, active=None)})
        for pod in others:
            jobs.end(pod, 143)
            remove(jobs.kube, jobs.space, pod["metadata"]["name"])
        found = jobs.until("Failed")
        assert conditions(found)["Failed"]["reason"] == "BackoffLimitExceeded"
        assert (found["status"]["failed"], found["status"]["terminating"]) == (3, 0)


def test_finalizers_of_the_template_keep_a_pod_whose_end_was_counted(jobs: Jobs) -> None:
    own = "example.org/kept"
    jobs.create(finalizers=[own])
    (pod,) = jobs.pods(1)
    assert set(pod["metadata"]["finalizers"]) == {own, "batch.kubernetes.io/job-tracking"}
    jobs.end(pod)
    jobs.until("Complete")
    jobs.kube.call("DELETE", f"{jobs.path}/j", {"propagationPolicy": "Background"})
    path = f"{jobs.space}/pods/{pod['metadata']['name']}"
    found = jobs.kube.until(path, lambda o: "deletionTimestamp" in o["metadata"])
    assert found["metadata"]["finalizers"] == [own] and found["status"]["phase"] == "Succeeded"
    jobs.kube.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge")
    jobs.pods(0)


def test_a_disruption_that_the_policy_ignores_does_not_count(jobs: Jobs) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    job = jobs.create(backoffLimit=0, podFailurePolicy={"rules": [rule]})
    assert job["spec"]["podReplacementPolicy"] == "Failed"
    (pod,) = jobs.pods(1)
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    jobs.end(pod, 137, ago_seconds=60, conditions=disrupted)
    assert len(jobs.pods(2)) == 2
    assert "failed" not in jobs.status(active=1)


def test_each_index_can_have_a_back_off_limit_of_its_own(jobs: Jobs) -> None:
    job = jobs.create(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=0)
    assert job["spec"]["backoffLimit"] == 2147483647
    pods = {p["metadata"]["annotations"][INDEX]: p for p in jobs.pods(2)}
    assert pods["0"]["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
    jobs.end(pods["0"], 1, ago_seconds=60)
    jobs.status(failedIndexes="0", failed=1, active=1)
    jobs.end(pods["1"])
    found = jobs.until("Failed")
    told = conditions(found)["Failed"]
    assert (told["reason"], told["message"]) == ("FailedIndexes", "Job has failed indexes")
    assert (found["status"]["completedIndexes"], found["status"]["failedIndexes"]) == ("1", "0")


def test_the_next_pod_of_an_index_carries_its_failures(jobs: Jobs) -> None:
    jobs.create(completions=1, completionMode="Indexed", backoffLimitPerIndex=2)
    (pod,) = jobs.pods(1)
    jobs.end(pod, 1, ago_seconds=60)
    (again,) = [p for p in jobs.pods(2) if p["metadata"]["name"] != pod["metadata"]["name"]]
    assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"


def test_success_can_be_reached_by_some_indexes_alone(jobs: Jobs) -> None:
    policy = {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]}
    jobs.create(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)
    pods = {p["metadata"]["annotations"][INDEX]: p for p in jobs.pods(3)}
    jobs.end(pods["2"])
    found = jobs.until("Complete")
    told = conditions(found)["SuccessCriteriaMet"]
    assert (told["reason"], told["message"]) == ("SuccessPolicy", "Matched rules at index 0")
    assert found["status"]["completedIndexes"] == "2" and "failed" not in found["status"]


def test_a_suspended_job_has_no_pods_and_begins_anew_when_resumed(jobs: Jobs) -> None:
    jobs.create(parallelism=2, completions=2)
    jobs.pods(2)
    jobs.kube.call("PATCH", f"{jobs.path}/j", {"spec": {"suspend": True}}, "merge")
    found = jobs.until("Suspended")
    told = conditions(found)["Suspended"]
    assert (told["reason"], told["message"]) == ("JobSuspended", "Job suspended")
    assert "startTime" not in found["status"] and "failed" not in found["status"]
    jobs.pods(0)
    jobs.kube.call("PATCH", f"{jobs.path}/j", {"spec": {"suspend": False}}, "merge")
    jobs.pods(2)
    found = jobs.kube.until(f"{jobs.path}/j", lambda o: conditions(o)["Suspended"]["status"] == "False")
    assert conditions(found)["Suspended"]["reason"] == "JobResumed" and found["status"]["startTime"]
    assert events(jobs.kube, jobs.space, "j", "Resumed") == ["Job resumed"]


def test_a_job_created_suspended_starts_when_it_is_resumed(jobs: Jobs) -> None:
    jobs.create(parallelism=2, completions=2, completionMode="Indexed", suspend=True)
    assert "startTime" not in jobs.until("Suspended")["status"]
    assert jobs.pods(0) == []
    jobs.kube.call("PATCH", f"{jobs.path}/j", {"spec": {"suspend": False}}, "merge")
    for pod in jobs.pods(2):
        jobs.end(pod)
    jobs.until("Complete")


def test_a_job_past_its_deadline_fails(jobs: Jobs) -> None:
    jobs.create(activeDeadlineSeconds=1)
    told = conditions(jobs.until("Failed"))["Failed"]
    why = ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert (told["reason"], told["message"]) == why
    jobs.pods(0)


def test_a_finished_job_can_go_by_itself_with_its_pods(jobs: Jobs) -> None:
    jobs.create(ttlSecondsAfterFinished=0)
    (pod,) = jobs.pods(1)
    jobs.end(pod)
    jobs.kube.until(f"{jobs.path}/j", lambda o: o.get("code") == 404)
    jobs.pods(0)


def test_with_replacement_of_failed_pods_only_a_deleted_pod_is_waited_for(jobs: Jobs) -> None:
    with own_node(jobs.kube) as node:
        jobs.create(podReplacementPolicy="Failed", node=node)
        (pod,) = jobs.pods(1)
        name = pod["metadata"]["name"]
        jobs.kube.call("DELETE", f"{jobs.space}/pods/{name}")
        jobs.status(terminating=1, active=None)
        jobs.pods(1)
        jobs.end(pod, 143, ago_seconds=60)
        jobs.status(failed=1, active=1)
        remove(jobs.kube, jobs.space, name)
        jobs.status(terminating=0, failed=1, active=1)


def test_otherwise_a_deleted_pod_counts_as_failed_while_it_still_goes(jobs: Jobs) -> None:
    with own_node(jobs.kube) as node:
        jobs.create(node=node, backoffLimit=0, podReplacementPolicy="TerminatingOrFailed")
        (pod,) = jobs.pods(1)
        jobs.kube.call("DELETE", f"{jobs.space}/pods/{pod['metadata']['name']}")
        jobs.until("FailureTarget")
        jobs.kube.until(f"{jobs.path}/j", lambda o: o["status"].get("failed") == 1)
        remove(jobs.kube, jobs.space, pod["metadata"]["name"])
        jobs.until("Failed")


def test_restarts_in_place_count_towards_the_limit(jobs: Jobs) -> None:
    jobs.create(restart="OnFailure", backoffLimit=2)
    (pod,) = jobs.pods(1)
    container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 2, "state": {}}
    path = f"{jobs.space}/pods/{pod['metadata']['name']}/status"
    status = {"phase": "Running", "containerStatuses": [container]}
    assert jobs.kube.call("PATCH", path, {"status": status}, "merge")[0] == 200
    assert conditions(jobs.until("Failed"))["Failed"]["reason"] == "BackoffLimitExceeded"


def test_a_job_let_go_of_its_pods_leaves_them_free_to_be_deleted(jobs: Jobs) -> None:
    jobs.create()
    (pod,) = jobs.pods(1)
    jobs.kube.call("DELETE", f"{jobs.path}/j", {"propagationPolicy": "Orphan"})
    path = f"{jobs.space}/pods/{pod['metadata']['name']}"
    found = jobs.kube.until(path, lambda o: "finalizers" not in o["metadata"])
    assert "ownerReferences" not in found["metadata"]


RESTARTED = (
    "spec.template.spec.restartPolicy",
    'only "Never" is supported when podFailurePolicy is specified',
)
IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"parallelism": -1}, "spec.parallelism", "must be greater than or equal to 0"),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex", "requires indexed completion mode"),
        ({"restart": "OnFailure", "podFailurePolicy": {"rules": [IGNORE]}}, *RESTARTED),
        (
            {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {"rules": [IGNORE]}},
            "spec.podReplacementPolicy",
            'Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
        ),
        ({"completionMode": "None"}, "spec.completionMode", 'supported values: "NonIndexed", "Indexed"'),
    ],
)
def test_what_does_not_go_together_is_refused(jobs: Jobs, spec: Any, field: str, why: str) -> None:
    restart = spec.pop("restart", "Never")
    body = {"template": template("image", restartPolicy=restart), **spec}
    code, refused = jobs.kube.call("POST", jobs.path, {"metadata": {"name": "j"}, "spec": body})
    assert (code, refused["reason"]) == (422, "Invalid")
    (cause,) = refused["details"]["causes"]
    assert cause["field"] == field and cause["message"].endswith(why)
