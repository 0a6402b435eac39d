"""Abuse of a token: it can report only one cluster's GPUs, and nothing that makes the intake fail."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.errors import Refusal
from clusters.models import Cluster, Gpu, Node
from monitoring.health import judging
from monitoring.intake import checks, gpus, tokens
from monitoring.models import Track, XidEvent
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.agent_reports import GPU_0, GPU_1, batch, facts, holding, report, sample, send
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("place", ["sent_at", "power_watts"])
def test_a_number_larger_than_any_float_is_refused(place: str) -> None:
    body = json.dumps(batch(report(1, sample(power_watts=1.5)), sent_at=1.5)).replace(
        f'"{place}": 1.5', f'"{place}": 1{"0" * 400}'
    )
    with pytest.raises(Refusal) as refused:
        checks.batch(body.encode())
    assert refused.value.status == 400


@pytest.mark.parametrize("uuid", ["MIG-" + "x" * 2000, GPU_0], ids=["endless", "the GPU's own"])
def test_a_part_of_a_gpu_may_have_any_name(secret: str, uuid: str) -> None:
    whole = facts(mig_devices=[{"uuid": uuid, "name": "1g"}])
    told = sample(mig=[{"uuid": uuid, "memory_used_mib": 5}])
    assert send(secret, batch(report(1, told), gpus=[whole])).status_code == 204


def test_a_negative_count_of_errors_is_none(secret: str) -> None:
    told = report(1, sample(ecc_uncorrected_since_boot=-1))
    assert send(secret, batch(told, gpus=[facts()])).status_code == 204
    assert Gpu.objects.get().trusted_errors == 0


def test_a_node_that_names_other_gpus_each_time_fills_no_table(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "MOST_GPUS", 4)
    for sequence in range(3):
        told = [facts(index, f"GPU-{sequence}-{index}") for index in range(3)]
        assert send(secret, batch(report(sequence), gpus=told)).status_code == 204
    assert Gpu.objects.count() == 4


def test_a_late_report_of_another_cluster_puts_no_figures_into_a_run(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    Claim.objects.filter(holder_id=workspace.pk).update(admitted_at=timezone.now() - timedelta(hours=1))
    other = Cluster.objects.create(slug="other", name="other")
    Node.objects.create(cluster=other, name="gpu-1")
    told: dict[str, Any] = report(1, ago=600, holdings=[holding(f"{workspace.object_name}-0")])
    for cluster, runs in ((other, []), (cast.cluster, [workspace.run])):
        _token, secret = tokens.issue(cast.admin, cluster, "nodes")
        assert send(secret, batch(told)).status_code == 204
        assert [track.runs for track in Track.objects.filter(cluster=cluster)] == [runs]


def test_a_storm_of_one_error_is_kept_and_judged_as_one(cast: Cast, secret: str) -> None:
    now = timezone.now()
    storm = [{"xid": 31, "at": now.timestamp() - ago, "uuid": GPU_0} for ago in (3, 2, 1)]
    reports = (report(1, xids=[*storm, {"xid": 31, "at": 0, "uuid": GPU_1}]), report(2, xids=storm))
    assert send(secret, batch(*reports)).status_code == 204
    assert XidEvent.objects.count() == 3
    seen = judging.observe(cast.cluster.pk, "gpu-1", timezone.now())
    assert [(now - event.at).seconds for event in seen.xids] == [1]
