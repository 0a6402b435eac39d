"""From a trouble in the cluster to its sentence in the browser's socket"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import Figure
from tests.e2e.stack import until
from tests.e2e.troubles import NODES_LOST_AFTER_SECONDS, TROUBLES, Scene, Trouble, scene_in

TIMES = 10


def measure() -> Iterator[Figure]:
    everything: list[float] = []
    temporary = tempfile.TemporaryDirectory(prefix="berth-bench-", ignore_cleanup_errors=True)
    with temporary as folder, scene_in(Path(folder)) as scene:
        for what, trouble in TROUBLES.items():
            took = sorted(seconds_until_told(scene, trouble) for _ in range(TIMES))
            everything += took
            yield Figure(f"{what}: p50", percentile(took, 50), "s")
            yield Figure(f"{what}: p95", percentile(took, 95), "s")
    yield Figure("all: p95", percentile(sorted(everything), 95), "s")
    yield Figure("of a lost node's: until the cluster itself calls it lost", NODES_LOST_AFTER_SECONDS, "s")


def seconds_until_told(scene: Scene, trouble: Trouble) -> float:
    with trouble.happens(scene) as (workspace, since), scene.heard(workspace) as told:
        found = until(f"“{trouble.code}” is told", lambda: told.first(trouble.code, since), 60)
    scene.end(workspace)
    assert found is not None
    return found[0]


def percentile(ordered: list[float], percent: int) -> float:
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]
