"""CSV lines that a spreadsheet shows as they are: people choose names, and none may act as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

# First characters that make a spreadsheet read a formula.
FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r\n")


def line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(safe(cell) for cell in cells)
    return text.getvalue()


def safe(cell: str) -> str:
    """Return the cell as text, whatever its first character."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
