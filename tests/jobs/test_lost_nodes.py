"""A node that is lost, and GPUs that are judged bad, cost a part no retry, and never let two pods of it run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.api import Api
from clusters.connections import api_for
from clusters.models import Gpu, Node
from devcluster.testing.cluster import DevCluster, running
from jobs.cluster.look import look
from jobs.models import Job
from quotas import admission
from tests.cast import Cast
from tests.own_rights import OwnRights
from tests.shared.cast_fixtures import NODES
from tests.shared.driving_jobs import RUNS, attempts, drive, held, in_phase, submitted, told
from tests.shared.looking import PlayedMirror
from tests.shared.played.jobs import PlayedJobs
from workloads.pods.wanted import Shared

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Trial cluster of this module alone, in which a silent node is soon lost."""
    nodes = f"{NODES}lifecycle: {{grace_seconds: 2, detach_seconds: 3}}\n"
    yield from running(tmp_path_factory.mktemp("stormy"), "--pods", "played", nodes=nodes)


@pytest.fixture(scope="module")
def played_cluster(stormy: DevCluster) -> Path:
    return stormy.kubeconfig


@pytest.fixture(scope="module")
def own_rights(played_cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    own = OwnRights(played_cluster, tmp_path_factory.mktemp("own"))
    yield own.kubeconfig
    own.clear_away()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.django_db(transaction=True)
def test_a_part_on_a_lost_node_waits_for_its_end_and_then_runs_elsewhere(
    house: Cast, api: Api, stormy: DevCluster
) -> None:
    job = drive(submitted(house, ends=RUNS, retries=0), in_phase("running"))
    (lost,) = attempts(job)
    stormy.switch(node=lost.node, state="off")
    Node.objects.filter(name=lost.node).update(ready=False)
    stormy.until(f"/api/v1/nodes/{lost.node}", is_not_ready)
    for _look in range(5):
        drive(job, in_phase("running"))
    assert (len(attempts(job)), held(job)) == (1, 1)
    api.merge_patch("Node", None, lost.node, {"spec": {"taints": [OUT_OF_SERVICE]}})
    job = drive(job, lambda row: len(attempts(row)) == 2 and row.phase == "running", 120)
    first, second = attempts(job)
    assert (first.counted, first.reason, second.part.failures) == (False, "ended_from_outside", 0)
    assert second.node != first.node
    assert held(job) == 1
    assert [pod["spec"]["nodeName"] for pod in alive(job)] == [second.node]


def is_not_ready(node: Any) -> bool:
    return any(one["type"] == "Ready" and one["status"] != "True" for one in node["status"]["conditions"])


def alive(job: Job) -> list[dict[str, Any]]:
    pods = api_for(job.pool.cluster).list("Pod", namespace=job.tenant.namespace)
    ours = [pod for pod in pods if pod["metadata"]["labels"].get("berth.dev/job") == str(job.pk)]
    return [pod for pod in ours if pod["status"]["phase"] in ("Pending", "Running")]


class Play:
    """A job in a cluster in memory: steps are taken one by one."""

    def __init__(self, cast: Cast, **changes: Any) -> None:
        self.cast, self.api = cast, PlayedJobs()
        self.mirror = PlayedMirror(self.api)
        self.job = submitted(cast, **({"retries": 0} | changes))
        self.goes_on(8)

    def goes_on(self, rounds: int = 4) -> Job:
        for _ in range(rounds):
            admission.admit(self.cast.pool.pk)
            self.job = Job.objects.select_related("secret").get(pk=self.job.pk)
            look(self.job, self.mirror, Shared([self.job.pk]))
            self.api.step()
        return Job.objects.get(pk=self.job.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["gpu", "node"])
def test_a_failure_on_what_is_judged_bad_counts_no_retry(cast: Cast, what: str) -> None:
    play = Play(cast)
    (attempt,) = attempts(play.job)
    if what == "gpu":
        gpu = {"cluster": cast.cluster, "node": attempt.node, "uuid": "GPU-0", "index": 0}
        Gpu.objects.create(**gpu, out_code="gpu_lost")
    else:
        Node.objects.filter(name=attempt.node).update(out_code="gpu_driver_gone")
    (pod,) = play.api.of("Pod")
    play.api.end_program(pod, 1)
    job = play.goes_on()
    first = attempts(job)[0]
    assert (first.reason, first.counted) == ("node_was_unwell", False)
    assert "node_was_unwell" in told(job)
    assert job.phase != "failed"


@pytest.mark.django_db
def test_the_same_failure_on_sound_hardware_is_the_programs(cast: Cast) -> None:
    play = Play(cast)
    (pod,) = play.api.of("Pod")
    play.api.end_program(pod, 1)
    job = play.goes_on()
    assert (attempts(job)[0].counted, job.phase, held(job)) == (True, "failed", 0)
