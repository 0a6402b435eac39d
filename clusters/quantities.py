"""Kubernetes quantities ("500m", "1.5Gi", "2e3") as whole numbers, and back.

Rounded up, as Kubernetes itself rounds: cpu to millicores, everything else to its unit (bytes, or a count).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

MAXIMUM = 2**63 - 1  # Kubernetes caps there, too

_SCALES = {
    **{
        suffix: Fraction(1000) ** power
        for suffix, power in zip("numkMGTPE", (-3, -2, -1, 1, 2, 3, 4, 5, 6), strict=True)
    },
    **{suffix + "i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:(?P<exponent>[eE][+-]?[0-9]{1,17})|(?P<suffix>[numkMGTPE]|[KMGTPE]i))?"
)
_CPU_NAMES = frozenset({"cpu", "requests.cpu", "limits.cpu"})


def parse(name: str, quantity: str | int) -> int:
    """Return the amount of the resource `name`: cpu in millicores, others in their unit. Raises ValueError."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"not a quantity: {str(quantity)[:80]!r}")
    scale = _SCALES.get(match["suffix"] or "", Fraction(1)) * (1000 if name in _CPU_NAMES else 1)
    return _rounded_up(Decimal(match["number"] + (match["exponent"] or "")), scale)


def _rounded_up(number: Decimal, scale: Fraction) -> int:
    """Return number * scale, rounded up exactly; absurd exponents are never written out."""
    if not number:
        return 0
    if number.adjusted() > 40:
        return MAXIMUM if number > 0 else -MAXIMUM
    if number.adjusted() < -40:
        return 1 if number > 0 else 0
    return max(-MAXIMUM, min(MAXIMUM, math.ceil(Fraction(number) * scale)))


def format_cpu(millicores: int) -> str:
    whole, rest = divmod(millicores, 1000)
    return f"{millicores}m" if rest else str(whole)


def format_mib(mib: int) -> str:
    return f"{mib}Mi"
