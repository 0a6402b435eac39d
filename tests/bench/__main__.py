"""`make bench [BENCH=start]`: all benchmarks, or the named ones, as Markdown tables."""

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.bench import Figure


def names(wanted: Iterable[str]) -> list[str]:
    there = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    return [name for name in there if name in wanted] if wanted else there


def table(title: str, figures: Iterable[Figure]) -> str:
    rows = [f"| {figure.what} | {figure.value:.2f} {figure.unit} |" for figure in figures]
    return "\n".join([f"### {title}", "", "| what | figure |", "| --- | --- |", *rows, ""])


def main() -> None:
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    for name in names(sys.argv[1:]):
        module = importlib.import_module(f"tests.bench.bench_{name}")
        print(table(str(module.__doc__).strip(), module.measure()), flush=True)


if __name__ == "__main__":
    main()
