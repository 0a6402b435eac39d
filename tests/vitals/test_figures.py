"""Counts of separate processes add up in rows."""

from __future__ import annotations

import json
import os

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from vitals import figures
from vitals.figures import Counter, Gauge, Histogram
from vitals.models import Figure

pytestmark = pytest.mark.django_db

LOOKS = Histogram("test_seconds", "Of a test.", ("kind",), bounds=(0.5, 2))
ERRORS = Counter("test_errors_total", "Of a test.", ("kind",))


@pytest.fixture(autouse=True)
def nothing_of_others() -> None:
    figures._tally.begin_anew()


def rows() -> dict[tuple[str, ...], float]:
    found = Figure.objects.values_list("name", "labels", "value")
    return {(name, *json.loads(labels).values()): value for name, labels, value in found}


def test_a_histogram_is_buckets_and_a_sum() -> None:
    for seconds in (0.25, 0.5, 1.5, 60):
        LOOKS.observe(seconds, "quick")
    figures.write()
    assert rows() == {
        ("test_seconds_bucket", "quick", "0.5"): 2,
        ("test_seconds_bucket", "quick", "2"): 1,
        ("test_seconds_bucket", "quick", "+Inf"): 1,
        ("test_seconds_sum", "quick"): 62.25,
    }


def test_what_many_processes_counted_is_added() -> None:
    for _ in range(3):
        ERRORS.count("away")
        figures.write()
    ERRORS.count("fault")
    figures.write()
    assert rows() == {("test_errors_total", "away"): 3, ("test_errors_total", "fault"): 1}


def test_nothing_is_written_while_nothing_happened() -> None:
    with CaptureQueriesContext(connection) as queries:
        figures.write()
    assert not queries.captured_queries


def test_all_that_was_counted_is_written_by_one_statement() -> None:
    for kind in "abc":
        LOOKS.observe(1, kind)
        ERRORS.count(kind)
    with CaptureQueriesContext(connection) as queries:
        figures.write()
    assert len(queries) == 1


def test_what_could_not_be_written_is_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: object) -> None:
        raise DatabaseError

    ERRORS.count("away")
    with monkeypatch.context() as while_away:
        while_away.setattr(figures, "_upsert", away)
        with pytest.raises(DatabaseError):
            figures.write()
    ERRORS.count("away")
    figures.write()
    assert rows() == {("test_errors_total", "away"): 2}


def test_a_clock_that_was_set_back_makes_nothing_negative() -> None:
    LOOKS.observe(-3600, "odd")
    figures.write()
    assert rows() == {("test_seconds_bucket", "odd", "0.5"): 1, ("test_seconds_sum", "odd"): 0}


def test_a_child_does_not_count_what_its_parent_counted() -> None:
    ERRORS.count("parent")
    Gauge("test_open", "Of a test.").add(2)
    child = os.fork()
    if not child:
        os._exit(1 if figures.gauges() or figures._tally.take() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert figures.gauges() == {"test_open": 2}
