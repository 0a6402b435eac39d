"""Container with endless output: it delays no other answer, and slowly written output is not lost."""

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from devcluster.kubelet.containers.logs import LogWriter
from devcluster.testing.cluster import DevCluster
from helpers.shells import PROCESSES, ended, process_pods, shell

pytestmark = process_pods
ARGUMENTS = PROCESSES


def test_a_flood_of_words_does_not_keep_the_api_from_answering(cluster: DevCluster) -> None:
    space = cluster.fresh()
    calm = median_seconds(cluster, space)
    cluster.create(f"{space}/pods", shell("flood", "exec yes"))
    cluster.until(f"{space}/pods/flood/log?tailLines=1", lambda text: "y" in text)
    # Written line by line, each answer took sixty times as long.
    assert median_seconds(cluster, space) < 10 * calm


def median_seconds(cluster: DevCluster, space: str) -> float:
    """Return the median duration of an answer, to ignore other work of this machine."""
    took = []
    for _ in range(20):
        began = time.monotonic()
        cluster.get(f"{space}/pods")
        took.append(time.monotonic() - began)
    return median(took)


@pytest.mark.slow
def test_the_last_words_are_read_however_slowly_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LogWriter.lines

    def slowly(self: LogWriter, *arguments: Any, **options: Any) -> None:
        time.sleep(0.2)  # the pause keeps the reader off for nine times as long: the container ends meanwhile
        write(self, *arguments, **options)

    monkeypatch.setattr(LogWriter, "lines", slowly)
    asyncio.run(ended(tmp_path, "echo one; sleep 0.3; echo two", 200, control_groups=True))
    assert [line.split()[-1] for line in (tmp_path / "log").read_text().splitlines()] == ["one", "two"]
