"""Metrics of a node for Prometheus."""

from __future__ import annotations

import re
from typing import Any

from monitoring.agent.exposition import Metric, text
from monitoring.agent.look import Looker
from tests.monitoring.agent.conftest import Make, Node
from tests.monitoring.agent.simulated_kubelet import answer, container, serving
from tests.monitoring.agent.stand_in import FIRST, MIG, SECOND, Gpu, Instance, Running, StandIn

LINE = re.compile(
    r'# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)+\})? -?[0-9][0-9.e+-]*'
)


def lines_of(looker: Looker, **more: Any) -> list[str]:
    own = [(Metric("berth_agent_reports_dropped_total", "Reports given up."), 3)]
    lines = text(looker.look(), looker.inventory, more.get("xids", {}), own).splitlines()
    assert all(LINE.fullmatch(line) for line in lines), [line for line in lines if not LINE.fullmatch(line)]
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    return lines


def test_metrics_have_base_units_and_the_uuid(looker: Make, node: Node) -> None:
    library = StandIn(Gpu(FIRST, processes=[Running(7), Running(8)]), Gpu(SECOND, mig=[Instance(MIG)]))
    pods = answer(('lab"\\', "ws-1-0", [container("main", ("nvidia.com/gpu", [FIRST]))]))
    with serving(node.kubelet, lambda _: pods):
        lines = lines_of(looker(library), xids={(FIRST, 79): 2})
    for line in (
        f'berth_gpu_utilization_ratio{{uuid="{FIRST}"}} 0.37',
        f'berth_gpu_memory_used_bytes{{uuid="{FIRST}"}} {float(1234 << 20)!r}',
        f'berth_gpu_memory_bytes{{uuid="{FIRST}"}} {float(81559 << 20)!r}',
        f'berth_gpu_power_watts{{uuid="{FIRST}"}} 415.25',
        f'berth_gpu_sm_clock_hertz{{uuid="{FIRST}"}} 1980000000.0',
        f'berth_gpu_up{{uuid="{FIRST}"}} 1.0',
        f'berth_gpu_row_remap_failed{{uuid="{FIRST}"}} 0.0',
        f'berth_gpu_slowed{{uuid="{FIRST}",by="power_cap"}} 1.0',
        f'berth_gpu_recovery_action{{uuid="{FIRST}",action="none"}} 1.0',
        f'berth_gpu_processes{{uuid="{FIRST}",pod_uid=""}} 2.0',
        f'berth_gpu_mig_memory_used_bytes{{uuid="{MIG}"}} {float(40 << 20)!r}',
        f'berth_gpu_held{{uuid="{FIRST}",device="{FIRST}",namespace="lab\\"\\\\",pod="ws-1-0",container="main"}} 1.0',
        f'berth_gpu_xids_total{{uuid="{FIRST}",xid="79"}} 2.0',
        "berth_agent_reports_dropped_total 3.0",
        "# TYPE berth_agent_reports_dropped_total counter",
    ):
        assert line in lines
    assert not any(line.startswith(f'berth_gpu_utilization_ratio{{uuid="{SECOND}"') for line in lines)


def test_without_a_library_there_is_the_cause_and_no_metric_of_gpus(looker: Make) -> None:
    lines = lines_of(looker(None))
    assert 'berth_agent_trouble{code="library_missing"} 1.0' in lines
    assert not any(line.startswith("berth_gpu_") for line in lines)


def test_a_gpu_that_does_not_answer_is_down_and_has_no_figures(
    looker: Make,
) -> None:
    library = StandIn(Gpu(FIRST))
    seen = looker(library)
    seen.look()
    library.lost.add(FIRST)
    lines = lines_of(seen)
    assert f'berth_gpu_up{{uuid="{FIRST}"}} 0.0' in lines
    assert not any(line.startswith("berth_gpu_power_watts") for line in lines)


def test_before_the_first_look_there_are_the_agents_own_metrics_only() -> None:
    waiting = Metric("berth_agent_reports_waiting", "Waiting.")
    assert text(None, None, {}, [(waiting, 0)]).splitlines()[1:] == [
        "# TYPE berth_agent_reports_waiting gauge",
        "berth_agent_reports_waiting 0.0",
    ]
