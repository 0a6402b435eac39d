"""Reports of agents about the pods of jobs, whose names have the run."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Gpu, PodUsage
from monitoring.models import Figure, Track
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.agent_reports import batch, holding, report, send
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def pod(cast: Cast) -> PodUsage:
    """Return the pod of a job's attempt on gpu-1."""
    run = make_workspace(cast, cast.bob).run  # an admitted claim; whose it is does not matter here
    Claim.objects.update(holder_kind=Claim.Holder.JOB, admitted_at=timezone.now() - timedelta(hours=1))
    return PodUsage.objects.create(
        cluster=cast.cluster, uid="pod-1", node="gpu-1", run=run, namespace=cast.demo.namespace,
        name=f"job-{run}-0-x7k2p", requests={"nvidia.com/gpu": 1},
    )  # fmt: skip


def figures_of(run: uuid.UUID | None) -> int:
    tracks = Track.objects.filter(runs=[run])
    return Figure.objects.filter(track_id__in=list(tracks.values_list("pk", flat=True))).count()


def held(pod: PodUsage, *, ago: int) -> object:
    return batch(report(1, holdings=[holding(pod.name, namespace=pod.namespace)], ago=ago))


def test_a_pod_of_a_job_that_is_gone_holds_no_gpu_though_the_kubelet_is_silent(
    secret: str, pod: PodUsage
) -> None:
    Gpu.objects.all().delete()
    send(secret, held(pod, ago=15))
    Gpu.objects.update(held_by=[{"namespace": pod.namespace, "pod": pod.name, "container": "job"}])
    PodUsage.objects.all().delete()
    silent = report(2)
    del silent["holdings"]
    send(secret, batch(silent))
    assert Gpu.objects.get().held_by == []


def test_a_late_report_puts_the_figures_into_the_attempt_of_then(secret: str, pod: PodUsage) -> None:
    PodUsage.objects.all().delete()
    send(secret, held(pod, ago=1800))
    assert figures_of(pod.run) == 1


def test_a_late_report_about_an_attempt_of_another_cluster_or_time_is_about_none(
    secret: str, pod: PodUsage
) -> None:
    Claim.objects.update(state=Claim.State.RELEASED, released_at=timezone.now() - timedelta(minutes=50))
    PodUsage.objects.all().delete()
    send(secret, held(pod, ago=1800))
    assert figures_of(pod.run) == 0
