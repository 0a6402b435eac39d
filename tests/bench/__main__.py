"""`make bench [BENCH=start]`: all benchmarks, or the named ones, as Markdown tables."""

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.bench import Figure, Table


def names(wanted: Iterable[str]) -> list[str]:
    there = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    return [name for name in there if name in wanted] if wanted else there


def show(title: str, figures: Iterable[Figure]) -> None:
    """Print row by row, so that a later failure loses no measured figure."""
    print(f"### {title}\n\n| what | figure |\n| --- | --- |", flush=True)
    for figure in figures:
        print(f"| {figure.what} | {figure.value:.2f} {figure.unit} |", flush=True)
    print(flush=True)


def show_tables(title: str, tables: Iterable[Table]) -> None:
    print(f"### {title}\n", flush=True)
    for table in tables:
        for line in (table.head, ["---"] * len(table.head), *table.rows):
            print(f"| {' | '.join(line)} |")
        print(flush=True)


def main() -> None:
    if not sys.argv[1:]:
        # Somebody's cluster is measured only by a benchmark that was named.
        os.environ.pop("KUBECONFIG", None)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    for name in names(sys.argv[1:]):
        module = importlib.import_module(f"tests.bench.bench_{name}")
        title = str(module.__doc__).strip()
        if hasattr(module, "tables"):
            show_tables(title, module.tables())
        else:
            show(title, module.measure())


if __name__ == "__main__":
    main()
