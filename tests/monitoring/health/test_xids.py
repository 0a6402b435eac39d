"""Meaning of Xids: one each, with a sentence, and the same in the guide, a node's log and an agent's report."""

from __future__ import annotations

import re
from pathlib import Path

from clusters import explain
from monitoring.health import xids

GUIDE = (Path(__file__).parents[3] / "docs/operator/health.md").read_text()
ROW = re.compile(r"^\| ([\d–, ]+) \| [^|]+ \| (yes|no) \|$", re.MULTILINE)
# Xids whose log line has more than the number: the repair, or the action that is left.
TOLD_BY_SAMPLES = {63, 92, 94, 154}


def numbers(text: str) -> list[int]:
    ends = [[int(end) for end in part.split("–")] for part in text.split(", ")]
    return [number for first, *last in ends for number in range(first, (last or [first])[0] + 1)]


def test_the_guides_table_of_xids_equals_the_code() -> None:
    listed = {number: out == "yes" for text, out in ROW.findall(GUIDE) for number in numbers(text)}
    assert listed == {number: meaning.takes_out for number, meaning in xids.KNOWN.items()}


def test_an_xid_in_a_nodes_log_has_the_same_cause() -> None:
    for xid in xids.KNOWN.keys() - TOLD_BY_SAMPLES:
        logged = explain.diagnose("gpu", f"NVRM: Xid (PCI:0000:9b:00): {xid}, pid=7, name=python")
        assert logged.code == (xids.KNOWN[xid].code or explain.UNKNOWN), xid


def test_no_xid_means_two_things_and_each_has_its_sentence() -> None:
    listed = [number for numbers in xids._BY_MEANING.values() for number in numbers]
    assert len(listed) == len(set(listed))
    assert {meaning.code for meaning in xids.KNOWN.values()} - {""} <= explain.BY_CODE.keys()
    assert not any(meaning.takes_out and not meaning.code for meaning in xids.KNOWN.values())
