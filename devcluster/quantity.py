"""Kubernetes quantities as whole thousandths, so that sums and comparisons are exact."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_SUFFIX = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{s: Fraction(1000**i) for i, s in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{s: Fraction(1024**i) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_FORM = re.compile(r"^([+-]?[0-9.]+)(?:([eE][-+]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)$")
MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=4096)
def milli(text: str | int | float) -> int:
    """The quantity in thousandths, rounded up as the scheduler does; ValueError if it is none."""
    match = _FORM.match(str(text))
    if match is None:
        raise ValueError(MALFORMED)
    number, exponent, suffix = match.groups()
    try:
        value = Fraction(number) * _SUFFIX[suffix or ""]
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(MALFORMED) from error
    if exponent:
        value *= Fraction(10) ** int(exponent[1:])
    return ceil(value * 1000)


def whole(text: str | int | float) -> int:
    """The quantity in units (bytes, cards), rounded up."""
    return -(-milli(text) // 1000)


def show(amount: int, like: str = "") -> str:
    """Thousandths as a canonical quantity; binary suffixes where `like` (a sample) has one."""
    if amount % 1000:
        return f"{amount}m"
    units = amount // 1000
    if like.endswith("i") and units:
        for power, suffix in ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if units % 1024**power == 0:
                return f"{units // 1024**power}{suffix}"
    return str(units)


def canonical(text: str | int | float) -> str:
    """How the API server writes the same quantity (1000m is 1, 0.5 is 500m)."""
    raw = str(text)
    match = _FORM.match(raw)
    if match is None:
        raise ValueError(MALFORMED)
    if match.group(3) and "." not in raw and match.group(3) not in ("m", "n", "u"):
        return raw
    return show(milli(raw), raw)
