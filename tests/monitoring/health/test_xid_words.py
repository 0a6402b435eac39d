"""Meaning of Xids: the same in a node's log (clusters) and in an agent's report (health)."""

from __future__ import annotations

from clusters.explain import UNKNOWN, diagnose
from monitoring.health.xids import KNOWN

# Xids whose log line has more than the number: the repair, or the action that is left.
TOLD_BY_SAMPLES = {63, 92, 94, 154}


def test_it_is_one_cause_in_both() -> None:
    xids = KNOWN.keys() - TOLD_BY_SAMPLES
    logged = {xid: diagnose("gpu", f"NVRM: Xid (PCI:0000:9b:00): {xid}, pid=7, name=python") for xid in xids}
    told = {xid: diagnosis.code for xid, diagnosis in logged.items()}
    assert told == {xid: KNOWN[xid].code or UNKNOWN for xid in xids}
