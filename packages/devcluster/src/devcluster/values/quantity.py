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
    """Return the quantity in thousandths, rounded up as the scheduler does; raise ValueError if it is no quantity."""
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
    """Return the quantity in units (bytes, cards), rounded up."""
    return -(-milli(text) // 1000)


def show(amount: int, like: str = "") -> str:
    """Return thousandths as a canonical quantity, in the notation of `like` (a sample): 1Ki, 1e3 or 1k."""
    exponent = "e" if "e" in like else "E" if "E" in like and not like.endswith(("E", "Ei")) else ""
    if amount % 1000:
        return f"{amount}{exponent}-3" if exponent else f"{amount}m"
    units, power, base = amount // 1000, 0, 1024 if like.endswith("i") else 1000
    while units and units % base == 0 and power < len(_POWERS):
        units, power = units // base, power + 1
    if not power:
        return str(units)
    if exponent:
        return f"{units}{exponent}{power * 3}"
    return f"{units}{_POWERS[power - 1].upper()}i" if base == 1024 else f"{units}{_POWERS[power - 1]}"


_POWERS = "kMGTPE"


@lru_cache(maxsize=4096)
def canonical(text: str | int | float) -> str:
    """Return the same quantity as the API server writes it (1000m is 1, 0.5 is 500m, 1024Mi is 1Gi)."""
    return show(milli(text), str(text))
