"""Tests of quantities against their plain meaning in Kubernetes, in exact decimals."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.quantities import MAXIMUM, format_cpu, format_mib, parse

SCALES = {
    "": Decimal(1),
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip

numbers = st.decimals(min_value=0, max_value=10**6, places=6).map(lambda number: f"{number:f}")


def exactly(number: str, scale: Decimal) -> int:
    with localcontext() as context:
        context.prec = 200
        return min(MAXIMUM, int((Decimal(number) * scale).to_integral_value(rounding=ROUND_CEILING)))


@given(number=numbers, suffix=st.sampled_from(sorted(SCALES)))
def test_every_suffix_means_what_kubernetes_means(number: str, suffix: str) -> None:
    assert parse("memory", number + suffix) == exactly(number, SCALES[suffix])


@given(number=numbers, suffix=st.sampled_from(sorted(SCALES)))
def test_cpu_is_counted_in_millicores(number: str, suffix: str) -> None:
    assert parse("cpu", number + suffix) == exactly(number, SCALES[suffix] * 1000)


@given(number=numbers, letter=st.sampled_from("eE"), exponent=st.integers(-30, 30))
def test_exponents_are_powers_of_ten(number: str, letter: str, exponent: int) -> None:
    assert parse("memory", f"{number}{letter}{exponent}") == exactly(number, Decimal(10) ** exponent)


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "100n", 1),  # rounded up, as the scheduler does
        ("cpu", 2, 2000),
        ("requests.cpu", "1", 1000),
        ("memory", "1E", 10**18),
        ("memory", "1E3", 1000),
        ("memory", ".5Ki", 512),
        ("memory", "5.", 5),
        ("memory", "1e999999999", MAXIMUM),
        ("memory", "1e-999999999", 1),
        ("memory", "0e999999999", 0),
    ],
)
def test_odd_quantities(name: str, text: str | int, amount: int) -> None:
    assert parse(name, text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "", "1 Gi", "Gi", "1Kb", "1ki", "1mi", "0x10", "--1", "1e", "١", "1.2.3", "inf", "NaN", "1e9999999999999999999",
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse("memory", text)


@given(millicores=st.integers(0, 10**6))
def test_cpu_is_written_as_it_is_read(millicores: int) -> None:
    assert parse("cpu", format_cpu(millicores)) == millicores


@given(mib=st.integers(0, 10**8))
def test_memory_is_written_as_it_is_read(mib: int) -> None:
    assert parse("memory", format_mib(mib)) == mib * 2**20


def test_whole_cores_are_written_short() -> None:
    assert (format_cpu(2000), format_cpu(1500), format_cpu(0)) == ("2", "1500m", "0")
