"""The backstop in a tenant's namespace: never lower than what the queue allows."""

from __future__ import annotations

import pytest

from quotas.allowed.ceilings import ceilings
from quotas.models import Quota
from tests.shared.stage import GPU, Stage

pytestmark = pytest.mark.django_db


def gpus(stage: Stage) -> int:
    return ceilings(stage.cast.demo, stage.cast.cluster)[f"requests.{GPU}"]


def test_a_ceiling_sums_own_and_borrowed_gpus_of_all_pools(stage: Stage) -> None:
    Quota.objects.filter(tenant=stage.cast.demo).update(nominal_gpus=3, borrowing_limit_gpus=2)
    stage.quota(4, pool=stage.another_pool("shares-the-name"))
    assert gpus(stage) == 3 + 2 + 4


def test_a_quota_below_use_leaves_room_for_restarts(stage: Stage) -> None:
    stage.running(3)
    stage.quota(1)
    assert gpus(stage) == 3
