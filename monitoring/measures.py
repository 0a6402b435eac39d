"""Metrics of agents and GPU tests for /metrics, without names of people and without queries."""

from __future__ import annotations

from vitals.figures import Counter

# "repeated": the report was received before, but its answer was lost.
REPORTS = Counter(
    "berth_intake_reports_total",
    "Reports of nodes' agents that came.",
    ("outcome",),
    known=(("taken",), ("repeated",), ("refused",)),
)
VALIDATIONS = Counter(
    "berth_validations_total",
    "Tests of GPUs that ended.",
    ("outcome",),
    known=(("passed",), ("failed",), ("not-run",)),
)
