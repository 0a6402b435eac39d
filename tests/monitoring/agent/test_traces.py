"""Recorded answers of drivers: they are always read in the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.agent.stand_in import FIRST, MIG, SECOND, Gpu, Instance, Running, StandIn, installed
from tests.monitoring.agent.trace import LOOKS, Replay, looks, record

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json"))


def without_clocks(seen: Any) -> Any:
    return json.loads(json.dumps([[{**look, "taken_at": 0}, inventory] for look, inventory in seen]))


def test_a_trace_replays_what_was_recorded(tmp_path: Path) -> None:
    library = StandIn(
        Gpu(FIRST, processes=[Running(7), Running(8, is_graphics=True)]),
        Gpu(SECOND, mig=[Instance(MIG, processes=[Running(9)])], power_milliwatts=None),
    )
    library.missing = {"nvmlDeviceGetTemperatureV"}
    trace, seen = record(library, tmp_path, 0)
    assert seen[0][0]["gpus"][0]["utilization_percent"] == 37
    trace = json.loads(json.dumps(trace))
    with installed(Replay(trace)):
        assert without_clocks(looks(tmp_path, LOOKS, 0)) == without_clocks(seen)


@pytest.mark.skipif(not TRACES, reason="no machine with a GPU was at hand to record one")
def test_recorded_drivers_are_read_whole(tmp_path: Path) -> None:
    for path in TRACES:
        with installed(Replay(json.loads(path.read_text()))):
            for look, inventory in looks(tmp_path, LOOKS, 0):
                assert look["gpus"], path.name
                assert inventory, path.name
                assert not any(gpu.get("failed") for gpu in look["gpus"]), path.name
