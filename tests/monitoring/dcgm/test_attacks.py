"""Malicious labels: a scraped process may write anything there. A malformed series hides no other."""

from __future__ import annotations

import pytest

from monitoring.dcgm.prometheus import Prometheus, Series
from tests.monitoring.dcgm.conftest import Server
from tests.monitoring.dcgm.told import NOW, SECOND, UTIL, labels


def read(server: Server, *told: Series) -> list[Series]:
    server.told = {UTIL: told}
    prometheus = Prometheus(server.url, "", within_seconds=60)
    try:
        return prometheus.series(UTIL, minutes=2)
    finally:
        prometheus.close()


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "9" * 5000], ids=["NUL", "half a character", "endless"])
def test_what_no_column_keeps_is_left_out(server: Server, text: str) -> None:
    good = Series(labels(SECOND), [(NOW, 9.0)])
    assert read(server, Series(labels("GPU-x", gpu=text), [(NOW, 7.0)]), good) == [good]


@pytest.mark.parametrize("at", [1e306, 9e18, -1e12])
def test_a_time_that_is_none_is_left_out(server: Server, at: float) -> None:
    told = Series(labels(SECOND), [(at, 7.0), (NOW, 9.0)])
    assert [series.samples for series in read(server, told)] == [[(NOW, 9.0)]]
