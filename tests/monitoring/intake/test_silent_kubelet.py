"""Holders and figures of a GPU while the kubelet is silent: never those of a pod that is gone."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Gpu, PodUsage
from monitoring.figures import series
from monitoring.models import Figure, Track
from quotas.models import Claim
from tests.cast import Cast
from tests.monitoring.intake.pods import has_pod, pod_of
from tests.shared.agent_reports import GPU_1, batch, facts, holding, report, sample, send
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(cast: Cast) -> Workspace:
    """Return bob's workspace, which runs on gpu-1."""
    workspace = make_workspace(cast, cast.bob)
    has_pod(workspace, "pod-1")
    return workspace


def runs_again(workspace: Workspace) -> uuid.UUID:
    """Replace its pod by the next run's, with the same name and another GPU. Return the run before."""
    PodUsage.objects.filter(name=pod_of(workspace)).delete()
    old = Claim.objects.get(holder_id=workspace.pk)
    assert workspace.run is not None
    new = Claim.objects.get(pk=old.pk)
    Claim.objects.filter(pk=old.pk).update(state=Claim.State.RELEASED, released_at=timezone.now())
    new.pk = uuid.uuid4()
    new.admitted_at = timezone.now() - timedelta(minutes=30)
    new.save(force_insert=True)
    workspace.run = new.pk
    workspace.save(update_fields=["run"])
    has_pod(workspace, "pod-2")
    return old.pk


def silent(sequence: int, **more: Any) -> dict[str, Any]:
    told = report(sequence, **more)
    del told["holdings"]
    return told


def held(sequence: int, workspace: Workspace, **more: Any) -> dict[str, Any]:
    return batch(report(sequence, holdings=[holding(pod_of(workspace))], **more))


def count(*runs: uuid.UUID | None) -> int:
    tracks = Track.objects.filter(runs=[run for run in runs if run])
    return Figure.objects.filter(track_id__in=list(tracks.values_list("pk", flat=True))).count()


def test_the_last_holder_stays_as_long_as_its_pod_is_there(secret: str, workspace: Workspace) -> None:
    send(secret, held(1, workspace, ago=15))
    send(secret, batch(silent(2, ago=10), silent(3, ago=5)))
    assert [entry["pod"] for entry in Gpu.objects.get().held_by] == [pod_of(workspace)]
    assert count(workspace.run) == 3


def test_without_its_pod_the_last_holder_is_none(secret: str, workspace: Workspace) -> None:
    send(secret, held(1, workspace, ago=15))
    PodUsage.objects.all().delete()
    send(secret, batch(silent(2)))
    assert Gpu.objects.get().held_by == []
    assert (count(workspace.run), count()) == (1, 1)


def test_the_next_run_of_the_same_name_is_not_the_holder(secret: str, workspace: Workspace) -> None:
    send(secret, held(1, workspace, ago=15))
    before = runs_again(workspace)
    send(secret, batch(silent(2)))
    assert Gpu.objects.get().held_by == []
    assert (count(before), count(workspace.run), count()) == (1, 0, 1)


def test_figures_of_a_stranger_are_not_shown_to_the_holder_before(
    cast: Cast, secret: str, workspace: Workspace
) -> None:
    """Check that Bob, who has another GPU now, does not see Carol, of another tenant, on his old one."""
    both = [facts(), facts(1, GPU_1)]
    told = report(1, sample(), sample(GPU_1), holdings=[holding(pod_of(workspace))])
    send(secret, batch(told, gpus=both))
    runs_again(workspace)
    has_pod(make_workspace(cast, cast.carol, name="theirs"), "pod-3")
    busy = sample(utilization_percent=99)
    send(secret, batch(silent(2, ago=-1) | {"gpus": [busy, sample(GPU_1)]}, gpus=both))
    shown = [value for line in series.of_workspace(workspace).series for _at, value in line.points if value]
    assert 99 not in shown
    assert not Track.objects.filter(runs__contains=[workspace.run]).exists()


def test_a_late_report_changes_no_holder_of_now(secret: str, workspace: Workspace) -> None:
    """Check that the late pod's name stands for the run before, and that reports without holdings have no holder."""
    late = report(1, holdings=[holding(pod_of(workspace))], ago=1800)
    Claim.objects.update(admitted_at=timezone.now() - timedelta(hours=1))
    send(secret, batch(late, silent(2, ago=1700), silent(3)))
    assert (count(workspace.run), count()) == (1, 2)
    assert Gpu.objects.get().held_by == []


def test_a_foreign_pod_stays_the_last_holder(secret: str) -> None:
    send(secret, batch(report(1, holdings=[holding("theirs", namespace="other")], ago=15)))
    send(secret, batch(silent(2)))
    assert [entry["pod"] for entry in Gpu.objects.get().held_by] == ["theirs"]
    assert Track.objects.get().runs == []


def test_the_kubelets_next_answer_counts(secret: str, workspace: Workspace) -> None:
    send(secret, held(1, workspace, ago=15))
    runs_again(workspace)
    send(secret, batch(silent(2, ago=10)))
    send(secret, held(3, workspace))
    assert count(workspace.run) == 1
