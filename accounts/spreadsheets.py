"""Lines of CSV that a spreadsheet shows as they are: names are chosen by people, and none is a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

# What a spreadsheet would take for a formula.
FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r\n")


def line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(safe(cell) for cell in cells)
    return text.getvalue()


def safe(cell: str) -> str:
    """As text, whatever it begins with."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
