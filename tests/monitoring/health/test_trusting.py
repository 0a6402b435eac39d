"""An admin's decision that a GPU works: valid for earlier reports, and as long as the machine runs."""

from __future__ import annotations

import time

import pytest
from django.utils import timezone

from accounts.errors import Conflict
from accounts.models import AuditEntry
from clusters.models import Gpu, Node
from monitoring.agent.schema import GpuFacts, GpuSample
from monitoring.figures import thinning
from monitoring.health import trusting
from monitoring.intake import gpus
from tests.monitoring.health.ward import NODE, Ward, open_codes

pytestmark = pytest.mark.django_db


def test_a_gpu_that_an_admin_trusts_is_used_again(ward: Ward) -> None:
    ward.xid(1, 79)
    assert trusting.trust(ward.cast.admin, ward.gpu(1))
    assert ward.gpu(1).out_code == "" and open_codes() == []
    assert AuditEntry.objects.get(action="cluster.trust_gpu").data["why"] == "gpu_lost"
    assert not trusting.trust(ward.cast.admin, ward.gpu(1))
    ward.xid(1, 79)
    assert ward.gpu(1).out_code == "gpu_lost"  # it happened again


def test_a_gpu_that_does_not_answer_cannot_be_trusted(ward: Ward) -> None:
    ward.sample(1, state="lost")
    with pytest.raises(Conflict, match="still reports"):
        trusting.trust(ward.cast.admin, ward.gpu(1))
    assert ward.gpu(1).out_code == "gpu_lost" and ward.gpu(1).trusted_at is None


def away_and_back(ward: Ward, *, boot: str = "boot-1", errors: int = 0) -> None:
    """Delete the node until its GPUs are forgotten, then add the node and its agent again."""
    Node.objects.filter(name=NODE).delete()
    ward.judge()
    thinning.forget_rows(time.time())
    assert not Gpu.objects.filter(node=NODE).exists() and open_codes() == []
    Node.objects.create(cluster=ward.cluster, name=NODE, system={"bootID": boot})
    node = gpus.read(ward.cluster.pk, NODE)
    facts: GpuFacts = {"index": 1, "uuid": "GPU-1", "mig_devices": []}
    gpus.take_inventory(node, [facts])
    sample: GpuSample = {"uuid": "GPU-1", "state": "ok", "ecc_uncorrected_since_boot": errors}
    gpus.take_samples(node, [sample], {}, timezone.now())
    ward.judge()


def test_trust_outlives_the_deletion_of_the_node(ward: Ward) -> None:
    ward.xid(1, 79)
    ward.sample(1, ecc_uncorrected_since_boot=3)
    trusting.trust(ward.cast.admin, ward.gpu(1))
    away_and_back(ward, errors=3)
    assert ward.gpu(1).out_code == ""
    ward.xid(1, 79)
    assert ward.gpu(1).out_code == "gpu_lost"  # it happened again


def test_an_untrusted_gpu_is_out_again_when_its_node_comes_back(ward: Ward) -> None:
    ward.xid(1, 79)
    away_and_back(ward)
    assert ward.gpu(1).out_code == "gpu_lost"


def test_errors_after_a_restart_are_not_trusted(ward: Ward) -> None:
    ward.sample(1, ecc_uncorrected_since_boot=3)
    trusting.trust(ward.cast.admin, ward.gpu(1))
    away_and_back(ward, boot="boot-2", errors=3)
    assert ward.gpu(1).out_code == "gpu_memory_damaged"
