"""Jobs count the end of each pod exactly once, however often and wherever the counting is interrupted."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from devcluster.api import Api, Writer
from devcluster.controllers.workloads.jobs import JobController
from devcluster.controllers.workloads.replicas import condition_of
from devcluster.resources import JOB, NAMESPACE, POD, SERVICE_ACCOUNT, Obj
from devcluster.store import Store
from devcluster.testing.cluster import DevCluster, pod

KEY = ("many", "j")
WRITER = Writer("test")


class Killed(Exception):
    pass


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = Api(Store(tmp_path / "objects.sqlite"))
    api.create(NAMESPACE, "", {"metadata": {"name": "many"}}, WRITER)
    api.create(SERVICE_ACCOUNT, "many", {"metadata": {"name": "default"}}, WRITER)
    return api


def job(completions: int, **annotations: str) -> Obj:
    template = {"metadata": {"annotations": annotations}, "spec": pod("j", restartPolicy="Never")["spec"]}
    counts = {"completions": completions, "parallelism": completions, "backoffLimit": completions}
    return {"metadata": {"name": "j"}, "spec": {**counts, "template": template}}


def kill_after(api: Api, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Let the store accept so many more writes, then fail."""
    put, left = api.store.put, [writes]

    def limited(*args: Any) -> Obj:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return put(*args)

    monkeypatch.setattr(api.store, "put", limited)


@pytest.mark.parametrize("writes", range(12))
def test_wherever_the_counting_is_cut_off_each_end_counts_once(
    api: Api, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    api.create(JOB, "many", job(3), WRITER)
    asyncio.run(JobController(api).reconcile(KEY))
    for found, phase in zip(api.store.each(POD), ("Succeeded", "Succeeded", "Failed"), strict=True):
        api.set_status(POD, found, found["status"] | {"phase": phase})
    with monkeypatch.context() as patch:
        kill_after(api, patch, writes)
        try:
            asyncio.run(JobController(api).reconcile(KEY))
        except Killed:
            assert writes < 11, "it needs fewer writes than that"
    again = JobController(api)
    for _ in range(3):
        asyncio.run(again.reconcile(KEY))
    status = api.get(JOB, *KEY)["status"]
    assert (status["succeeded"], status["failed"]) == (2, 1)
    assert status["uncountedTerminatedPods"] == {}


@pytest.mark.slow
def test_hundreds_of_pods_that_end_complete_their_job(cluster: DevCluster) -> None:
    space = cluster.fresh()
    jobs = space.replace("/api/v1", "/apis/batch/v1") + "/jobs"
    cluster.create(jobs, job(200, **{"devcluster.local/ends": "0.1:0"}))
    found = cluster.until(f"{jobs}/j", lambda o: condition_of(o, "Complete") is not None, seconds=60)
    assert found["status"]["succeeded"] == 200
    pods = cluster.get(f"{space}/pods")["items"]
    assert len(pods) == 200 and not any("finalizers" in p["metadata"] for p in pods)
