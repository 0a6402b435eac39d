"""Jobs on a node or GPU with a problem: their owner is notified once, and a drain or a bad GPU costs no retry."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.notices.models import Notice
from clusters.models import PodUsage
from jobs import notices
from jobs.models import Attempt, Job
from jobs.runs.attempts import out_of_order
from monitoring.health import drain
from monitoring.models import Trouble
from quotas import admission
from tests.monitoring.health.ward import NODE, Ward
from tests.shared.driving_jobs import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(ward: Ward) -> Job:
    """Return a job with two parts on gpu-1, the first of which has GPU 0, the second GPU 1."""
    made = submitted(ward.cast, completions=2, parallelism=2)
    admission.admit(made.pool_id)
    Attempt.objects.update(node=NODE, created_at=timezone.now())
    for index, attempt in enumerate(Attempt.objects.order_by("pk")):
        on_gpu(ward, index, made, attempt)
    return made


def on_gpu(ward: Ward, index: int, job: Job, attempt: Attempt) -> None:
    pod = {"namespace": job.tenant.namespace, "name": f"{attempt.object_name}-0-abcde"}
    PodUsage.objects.create(
        cluster=ward.cluster, uid=f"pod-{index}", node=NODE, run=attempt.run,
        requests={"nvidia.com/gpu": 1}, **pod,
    )  # fmt: skip
    gpu = ward.gpu(index)
    gpu.held_by.append({"namespace": pod["namespace"], "pod": pod["name"], "container": "job"})
    gpu.save()


def health(ward: Ward) -> list[Notice]:
    return list(Notice.objects.filter(user=ward.cast.alice.user, kind="health"))


def told(job: Job, code: str) -> list[Any]:
    return list(job.events.filter(code=code).values_list("data__index", flat=True))


def test_the_part_on_a_lost_gpu_is_told_of_it_and_the_other_is_not(ward: Ward, job: Job) -> None:
    ward.sample(0, state="lost")
    (notice,) = health(ward)
    assert told(job, notice.data["code"]) == [0]
    words = notices.describe(ward.cast.alice.user, [notice])[notice.pk]
    assert (words.path, words.is_past) == (f"/jobs/{job.pk}/", False)
    ward.sample(0, state="ok")
    ward.judge()


def test_a_problem_of_the_node_is_told_once_for_all_parts_of_a_job(ward: Ward, job: Job) -> None:
    ward.node(conditions={"DiskPressure": {"status": "True"}})
    ward.judge()
    (notice,) = health(ward)
    assert sorted(told(job, notice.data["code"])) == [0, 1]
    ward.node(conditions={"DiskPressure": {"status": "False"}})
    assert notices.describe(ward.cast.alice.user, [notice])[notice.pk].is_past


def test_a_drain_is_announced_and_then_costs_no_retry(ward: Ward, job: Job) -> None:
    now = timezone.now().isoformat()
    Trouble.objects.create(
        cluster=ward.cluster, about=Trouble.About.NODE, subject=NODE, node=NODE, code="node_drains",
        data={"until": now}, takes_out=True, since=timezone.now(),
    )  # fmt: skip
    ward.judge()
    (notice,) = health(ward)
    assert NODE in notices.describe(ward.cast.alice.user, [notice])[notice.pk].text
    drain.pass_due()
    assert sorted(told(job, "ended_by_drain")) == [0, 1]
    assert set(job.parts.values_list("phase", "ending")) == {("ending", "again")}


def test_a_failure_on_a_gpu_that_is_judged_bad_is_the_gpus(ward: Ward, job: Job) -> None:
    assert out_of_order(job, NODE) == ""
    ward.sample(0, state="lost")
    assert out_of_order(job, NODE) != ""
