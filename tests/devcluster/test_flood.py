"""A container that talks without end: nobody else waits for it."""

import shutil
import sys
import time
from collections.abc import Iterator

import pytest

from tests.devcluster.cluster import ROOT, DevCluster, running
from tests.devcluster.test_process_pods import NODES, shell

pytestmark = pytest.mark.skipif(
    not ROOT or shutil.which("unshare") is None, reason="process pods with disks need root and util-linux"
)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    arguments = ["--pods", "process", "--image", f"local/venv:1={sys.prefix}"]
    yield from running(tmp_path_factory.mktemp("flood"), *arguments, nodes=NODES)


def test_a_flood_of_words_does_not_keep_the_api_from_answering(cluster: DevCluster) -> None:
    space = cluster.fresh()
    cluster.create(f"{space}/pods", shell("flood", "exec yes"))
    cluster.until(f"{space}/pods/flood/log?tailLines=1", lambda text: "y" in text)
    took = []
    for _ in range(20):
        began = time.monotonic()
        cluster.get(f"{space}/pods")
        took.append(time.monotonic() - began)
    # Written line by line, each answer took a second and a half.
    assert sorted(took)[len(took) // 2] < 0.5
