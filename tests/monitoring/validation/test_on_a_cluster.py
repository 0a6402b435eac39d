"""Tests of a node's GPUs on a trial cluster, with the rights of Berth's own account: passed, failed, not run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.errors import Conflict
from accounts.models import AuditEntry
from clusters.api import Api
from clusters.connections import api_for
from clusters.models import Node
from devcluster.testing.waiting import until
from monitoring.drift.survey import survey
from monitoring.models import Validation
from monitoring.validation import manifests, queries, starting, steps, words
from tests.cast import Cast
from tests.own_rights import bind

pytestmark = pytest.mark.django_db

PASSES, FAILS = (f"devcluster.local/simulated-vectoradd:{how}" for how in ("passes", "fails"))
MOST_SECONDS = 60


@pytest.fixture
def house(cast: Cast, own_rights: Path) -> Cast:
    cast.cluster.kubeconfig_path = str(own_rights)
    cast.cluster.validation_image = PASSES
    cast.cluster.save()
    return cast


@pytest.fixture
def api(house: Cast) -> Api:
    return api_for(house.cluster)


def begin(house: Cast, node: str = "gpu-1") -> Validation:
    (plan,) = starting.plans(Node.objects.filter(name=node))
    return starting.start(house.admin, plan)


def ended(row: Validation) -> Validation:
    """Look at the test, as the watcher would request it, until it has ended."""

    def has_ended() -> bool:
        look(row)
        return row.ended_at is not None

    until(has_ended, MOST_SECONDS)
    return row


def look(row: Validation) -> None:
    steps.look(row.pk)
    row.refresh_from_db()


def job(row: Validation, api: Api) -> object:
    return api.get("Job", steps.own_namespace(), manifests.name_of(row))


def test_a_working_gpu_passes_and_its_job_is_deleted(house: Cast, api: Api) -> None:
    row = ended(begin(house))
    assert (row.outcome, row.code, row.asked_by) == ("passed", "validation_passed", house.admin.user)
    assert "Test PASSED" in row.log and "simulated" in row.log
    assert row.started_at and row.ended_at and row.started_at <= row.ended_at
    assert queries.of_node(house.cluster.pk, "gpu-1").get() == row and not queries.failed(
        house.cluster.pk, "gpu-1"
    )
    gone = job(row, api)
    assert gone is None or gone["metadata"].get("deletionTimestamp")  # type: ignore[index]
    assert AuditEntry.objects.get().action == "cluster.validate"
    bind(house.cluster)
    assert survey(house.cluster, api).found == []  # its namespace is no drift


def test_a_failed_test_keeps_the_node_out_until_an_admin_overrules_it(house: Cast) -> None:
    house.cluster.validation_image = FAILS
    house.cluster.save()
    row = ended(begin(house))
    assert (row.outcome, row.code) == ("failed", "gpu_memory_damaged")
    assert queries.failed(house.cluster.pk, "gpu-1") == row
    assert Node.objects.get(name="gpu-1").gpus_out_code == "gpu_test_failed"  # nothing new gets its GPUs
    assert starting.overrule(house.admin, row) and not starting.overrule(house.admin, row)
    assert queries.failed(house.cluster.pk, "gpu-1") is None
    assert Node.objects.get(name="gpu-1").gpus_out_code == ""


def test_a_missing_image_is_reported_as_the_reason(house: Cast) -> None:
    house.cluster.validation_image = "berth.local/absent:1"
    house.cluster.save()
    row = begin(house)

    def is_told() -> bool:
        look(row)
        return bool(row.code)

    until(is_told, MOST_SECONDS)
    assert (row.ended_at, row.code) == (None, "image_not_found")  # the problem is shown while it lasts
    Validation.objects.update(asked_at=timezone.now() - steps.DEADLINE - timedelta(seconds=1))
    row = ended(row)
    assert (row.outcome, row.code) == ("not-run", "image_not_found")


def test_a_job_that_somebody_deletes_ends_its_test(house: Cast, api: Api) -> None:
    row = begin(house)
    steps.look(row.pk)
    row.refresh_from_db()
    assert row.job_uid and api.delete("Job", steps.own_namespace(), manifests.name_of(row))
    row = ended(row)
    assert (row.outcome, words.sentence(row)) == (
        "not-run",
        "Its Job or its pod was deleted in the cluster before it ended.",
    )


@pytest.mark.slow
def test_a_closed_node_is_tested_too(house: Cast, api: Api) -> None:
    api.merge_patch("Node", None, "gpu-2", {"spec": {"unschedulable": True}})
    try:
        Node.objects.filter(name="gpu-2").update(unschedulable=True, out_code="gpu_lost")
        assert ended(begin(house, "gpu-2")).outcome == "passed"
    finally:
        api.merge_patch("Node", None, "gpu-2", {"spec": {"unschedulable": None}})


@pytest.mark.slow
def test_another_worker_continues_a_test_after_a_crash(house: Cast) -> None:
    row = begin(house)
    steps.look(row.pk)
    Validation.objects.update(
        job_uid="", queued_at=timezone.now()
    )  # as if it was killed before it wrote that down
    assert ended(row).outcome == "passed"


def test_a_second_test_of_a_node_is_refused(house: Cast) -> None:
    plans = starting.plans(Node.objects.filter(name="gpu-1"))
    starting.start(house.admin, plans[0])
    with pytest.raises(Conflict, match="under way"):
        starting.start(house.admin, plans[0])
    with pytest.raises(Conflict, match="under way"):
        begin(house)
