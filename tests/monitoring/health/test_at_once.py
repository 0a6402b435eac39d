"""Concurrent reports, changes and looks about one node: one trouble, and no deadlock."""

from __future__ import annotations

import pytest
from django.db import transaction

from clusters.models import Gpu, Node
from monitoring.health import judging
from monitoring.models import Trouble
from tests.cast import Cast
from tests.monitoring.health.ward import NODE, Ward
from tests.shared.concurrency import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_reports_changes_of_the_node_and_looks_write_one_trouble(ward: Ward, cast: Cast) -> None:
    def report(index: int) -> None:
        """Act like the intake of a report: lock, write rows, judge."""
        with transaction.atomic():
            judging.lock(cast.cluster.pk, NODE)
            Gpu.objects.filter(uuid=f"GPU-{index}").update(sample={"uuid": f"GPU-{index}", "state": "lost"})
            judging.judge(cast.cluster.pk, NODE)

    def change() -> None:
        Node.objects.filter(name=NODE).update(conditions={"DiskPressure": {"status": "True"}})
        judging.judge(cast.cluster.pk, NODE)

    def look() -> None:
        judging.judge(cast.cluster.pk, NODE)

    work = (lambda: report(0), lambda: report(1), change, look, look)
    at_once(lambda number: work[number](), len(work))
    found = sorted(Trouble.objects.filter(ended_at=None).values_list("subject", "code"))
    assert found == [("GPU-0", "gpu_lost"), ("GPU-1", "gpu_lost"), (NODE, "node_short_of_disk")]
    assert sorted(Gpu.objects.exclude(out_code="").values_list("uuid", flat=True)) == ["GPU-0", "GPU-1"]
    assert Node.objects.get(name=NODE).out_code == "node_short_of_disk"
