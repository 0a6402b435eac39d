"""Simulated cluster in memory that also runs batch Jobs of one pod, as `jobs/cluster/manifests.py` writes them."""

from __future__ import annotations

from copy import deepcopy

from tests.shared.played_api import Object, PlayedApi

DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
FOREGROUND = "foregroundDeletion"


class PlayedJobs(PlayedApi):
    """A program runs until `end_program`. Ghosts are programs of pods that vanished while they ran, by run."""

    def __init__(self) -> None:
        super().__init__()
        self.ghosts: set[str] = set()

    def step(self) -> bool:
        collected = sum(self._collect(pod) for pod in self.of("Pod"))
        went_on = sum(self._run_job(job) for job in self.of("Job"))
        return super().step() or collected + went_on > 0

    # --- what happens to a pod

    def end_program(self, pod: Object, exit_code: int) -> None:
        state = {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}}
        pod["status"] = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [{"name": "job", "state": state}],
        }
        self.put(pod)

    def disrupt(self, pod: Object) -> None:
        """End a pod as an eviction does, or the pod collector on a node that is out of service."""
        self.end_pod(pod, "")
        pod["status"]["conditions"] = [DISRUPTED]
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.put(pod)

    def vanish(self, pod: Object) -> None:
        """Remove a pod by force, finalizer and all: its program may run on."""
        self.ghosts.add(run_of(pod))
        del self.objects["Pod", pod["metadata"]["namespace"], pod["metadata"]["name"]]
        self.changed(pod)

    def delete_job(self, job: Object, propagation: str) -> None:
        if propagation == "Foreground":
            job["metadata"]["finalizers"] = [FOREGROUND]
        self.mark_deleted(job)
        if propagation == "Orphan":
            for pod in self.pods_of(job):
                pod["metadata"]["ownerReferences"] = []

    # --- controllers

    def pods_of(self, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        return [pod for pod in self.of("Pod") if {"uid": uid} in pod["metadata"]["ownerReferences"]]

    def _collect(self, pod: Object) -> bool:
        """Delete pods whose Job is gone, or is deleted in the foreground."""
        owners = {one["uid"] for one in pod["metadata"]["ownerReferences"]}
        jobs = {job["metadata"]["uid"]: job for job in self.of("Job")}
        stays = not owners or any(
            uid in jobs and not jobs[uid]["metadata"].get("deletionTimestamp") for uid in owners
        )
        if stays or pod["metadata"].get("deletionTimestamp"):
            return False
        self.mark_deleted(pod)
        return True

    def _run_job(self, job: Object) -> bool:
        pods = self.pods_of(job)
        if job["metadata"].get("deletionTimestamp"):
            if not pods:
                job["metadata"]["finalizers"] = []
                self.put(job)
            return not pods
        status = job.setdefault("status", {})
        if status.get("conditions"):
            return False
        if job["spec"].get("suspend"):
            alive = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
            for pod in alive:
                self.mark_deleted(pod)
            return bool(alive)
        phases = [pod["status"]["phase"] for pod in pods]
        if not status.get("made"):
            status["made"] = True
            self._make_pod(job)
        elif "Succeeded" in phases:
            status["conditions"] = [{"type": "Complete", "status": "True"}]
        elif "Failed" in phases or not pods:
            status["conditions"] = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
        else:
            return False
        self.put(job)
        return True

    def _make_pod(self, job: Object) -> None:
        template = deepcopy(job["spec"]["template"])
        name = f"{job['metadata']['name']}-0-{next(self._numbers)}"
        metadata = template["metadata"] | {
            "name": name,
            "namespace": job["metadata"]["namespace"],
            "uid": f"uid-{name}",
            "ownerReferences": [{"uid": job["metadata"]["uid"]}],
        }
        self.put(
            {"kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
        )


def run_of(pod: Object) -> str:
    run: str = pod["metadata"]["labels"]["berth.dev/run"]
    return run
