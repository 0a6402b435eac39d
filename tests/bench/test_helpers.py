"""The functions that benchmarks call in other processes: nothing else would notice that one of them is broken."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.helpers import askers, full_pool, seeds, usage

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
        lambda: seeds.samples(3),
        lambda: seeds.watcher("kubeconfig"),
        lambda: usage.seed(old=2, runs=3),
    ],
    ids=("admission", "estimate", "gateway", "lists", "samples", "watcher", "usage"),
)
def test_the_rows_that_a_benchmark_begins_with_can_be_made(seed: Callable[[], object]) -> None:
    seed()
