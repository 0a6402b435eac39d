"""Time from a trouble in the cluster to its sentence in the browser's socket"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import Figure
from tests.e2e.scene import NODES_LOST_AFTER_SECONDS, Scene, scene_in
from tests.e2e.troubles import TROUBLES, End, Trouble, first_message, is_over

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
    yield Figure("all: p50", percentile(sorted(everything), 50), "s")
    yield Figure("all: p95", percentile(sorted(everything), 95), "s")
    yield Figure("of a lost node's: until the cluster itself calls it lost", NODES_LOST_AFTER_SECONDS, "s")


def seconds_until_told(scene: Scene, trouble: Trouble) -> float:
    """Measure, then wait for recovery: a node on which nothing started would not be tried again for a while."""
    with trouble.happens(scene) as (workspace, since), scene.heard(workspace) as told:
        seconds, _sentence = first_message(told, trouble, since)
        if trouble.end == End.NONE or trouble.code.startswith("image_"):
            scene.tidy()  # no recovery: an image that is pulled once would be there for the next run
            return seconds
    if trouble.end != End.STARTS_AGAIN:
        is_over(scene, trouble, workspace)
    scene.tidy()
    return seconds


def percentile(ordered: list[float], percent: int) -> float:
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]
