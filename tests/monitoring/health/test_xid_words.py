"""An Xid means the same in the log of a node, which clusters explain, and in an agent's report, which health judges."""

from __future__ import annotations

import pytest

from clusters.explain import UNKNOWN, diagnose
from monitoring.health.xids import KNOWN

# A log says more of them than the number: what was to be repaired, or which action is left to do.
TOLD_BY_SAMPLES = {63, 92, 94, 154}


@pytest.mark.parametrize("xid", sorted(KNOWN.keys() - TOLD_BY_SAMPLES))
def test_it_is_one_cause_in_both(xid: int) -> None:
    told = diagnose("gpu", f"NVRM: Xid (PCI:0000:9b:00): {xid}, pid=7, name=python")
    assert told.code == (KNOWN[xid].code or UNKNOWN)
