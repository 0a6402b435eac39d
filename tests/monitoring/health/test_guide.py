"""The operators' guide and the code: the same effect of each Xid."""

from __future__ import annotations

import re
from pathlib import Path

from monitoring.health import xids

GUIDE = (Path(__file__).parents[3] / "docs/operator/health.md").read_text()
ROW = re.compile(r"^\| ([\d–, ]+) \| [^|]+ \| (yes|no) \|$", re.MULTILINE)


def numbers(text: str) -> list[int]:
    ends = [[int(end) for end in part.split("–")] for part in text.split(", ")]
    return [number for first, *last in ends for number in range(first, (last or [first])[0] + 1)]


def test_the_table_of_xids_is_that_of_the_code() -> None:
    told = {number: out == "yes" for text, out in ROW.findall(GUIDE) for number in numbers(text)}
    assert told == {number: meaning.takes_out for number, meaning in xids.KNOWN.items()}
