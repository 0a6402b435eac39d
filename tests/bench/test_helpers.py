"""The functions that benchmarks call in other processes: nothing else would notice that one of them is broken."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clusters.models import Gpu
from tests.bench.helpers import askers, fleet, full_pool, seeds, usage
from tests.shared.agent_reports import send

CALLED = re.compile(r'(?:call|begin)\([\w.]+, "(\w+)\.(\w+)"')


def test_every_function_that_a_benchmark_calls_exists() -> None:
    benches = sorted(Path(__file__).parent.glob("bench_*.py"))
    called = {found for bench in benches for found in CALLED.findall(bench.read_text())}
    assert len(called) > 10
    for module, name in called:
        assert callable(getattr(importlib.import_module(f"tests.bench.helpers.{module}"), name))


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    "seed",
    [
        askers.prepare,
        full_pool.seed,
        lambda: seeds.gateway(8888),
        lambda: seeds.lists(20),
        lambda: seeds.watcher("kubeconfig"),
        lambda: usage.seed(old=2, runs=3),
    ],
    ids=("admission", "estimate", "gateway", "lists", "watcher", "usage"),
)
def test_the_rows_that_a_benchmark_begins_with_can_be_made(seed: Callable[[], object]) -> None:
    seed()


@pytest.mark.slow
@pytest.mark.django_db
def test_the_reports_of_a_fleet_are_taken() -> None:
    token, *_of_readers = seeds.samples(3)
    assert send(token, fleet.Node(3, 0, token).body()).status_code == 204
    assert Gpu.objects.filter(node="gpu-3").count() == fleet.GPUS_PER_NODE
