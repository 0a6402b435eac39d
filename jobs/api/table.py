"""Parts of a job as CSV: a column for each parameter and each value that its programs reported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from accounts.spreadsheets import line
from jobs.models import Part
from jobs.sweeps import names_in, written


async def csv_parts(parts: Sequence[Part]) -> AsyncIterator[list[str]]:
    parameters, metrics = names_in(parts, "parameters"), names_in(parts, "metrics")
    yield [line(["index", *parameters, "phase", "attempts", "failures", *metrics])]
    yield [
        line(
            [
                str(part.index),
                *(_cell(part.parameters.get(name)) for name in parameters),
                part.phase,
                str(part.number),
                str(part.failures),
                *(_cell(part.metrics.get(name)) for name in metrics),
            ]
        )
        for part in parts
    ]


def _cell(value: Any) -> str:
    return "" if value is None else written(value)
