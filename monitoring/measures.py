"""What is measured of agents and of tests of GPUs, for /metrics: nobody's name, and no query."""

from __future__ import annotations

from vitals.figures import Counter

# "repeated" came before: its answer was lost.
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
