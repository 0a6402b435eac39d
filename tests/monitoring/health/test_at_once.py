"""Concurrent reports, changes and looks about one node: one trouble, and no deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from clusters.models import Gpu, Node
from monitoring.health import judging
from monitoring.models import Trouble
from tests.cast import Cast
from tests.monitoring.health.ward import NODE, Ward

pytestmark = pytest.mark.django_db(transaction=True)


def all_at_once(*deeds: Callable[[], None]) -> list[BaseException]:
    start, failed = threading.Barrier(len(deeds)), list[BaseException]()

    def run(deed: Callable[[], None]) -> None:
        try:
            start.wait(30)
            deed()
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(deed,)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return failed


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

    assert all_at_once(lambda: report(0), lambda: report(1), change, look, look) == []
    found = sorted(Trouble.objects.filter(ended_at=None).values_list("subject", "code"))
    assert found == [("GPU-0", "gpu_lost"), ("GPU-1", "gpu_lost"), (NODE, "node_short_of_disk")]
    assert sorted(Gpu.objects.exclude(out_code="").values_list("uuid", flat=True)) == ["GPU-0", "GPU-1"]
    assert Node.objects.get(name=NODE).out_code == "node_short_of_disk"
