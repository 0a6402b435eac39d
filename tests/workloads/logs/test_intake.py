"""Reading of a container's log: times, what was stored before, and the pace of one container."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.logs.log_server import stamped
from workloads.logs import intake
from workloads.logs.chunks import Entry
from workloads.logs.intake import SECOND, Intake, Stored, nanoseconds, read, since_ns

NOON = int(datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("stamp", "after_noon"),
    [
        ("2026-11-27T12:00:00Z", 0),
        ("2026-11-27T12:00:00.000000001Z", 1),
        ("2026-11-27T12:00:00.5Z", SECOND // 2),
        ("2026-11-27T20:00:01.250000000+08:00", SECOND * 5 // 4),
        ("2026-11-27T07:00:00.123456789-05:00", 123456789),
    ],
)
def test_times_are_read_to_the_nanosecond(stamp: str, after_noon: int) -> None:
    assert nanoseconds(stamp) == NOON + after_noon


@pytest.mark.parametrize(
    "line",
    ["", "no time here", "2026-11-27T12:00:00 x", "2026-11-27T12:00:00.5x y", "2026-13-27T12:00:00Z x"],
)
def test_a_piece_of_a_line_has_the_time_of_its_line(line: str) -> None:
    assert read(line, 7) == Entry(7, line)
    assert read(line, None) is None  # words of the kubelet


def test_a_line_may_be_empty() -> None:
    assert read("2026-11-27T12:00:00Z ", 0) == Entry(NOON, "")


GAPS = st.lists(
    st.tuples(st.integers(-SECOND // 2, 3 * SECOND), st.sampled_from(["a", "b", "same"])), max_size=60
)


@given(GAPS, st.lists(st.integers(0, 60), max_size=6), st.data())
def test_no_line_is_missed_and_none_comes_twice_over_any_cuts(
    gaps: list[tuple[int, str]], cuts: list[int], data: st.DataObject
) -> None:
    """The server cuts `sinceTime` to seconds; of what was read, a crash may lose what was not stored."""
    log: list[Entry] = []
    ns = highest = NOON
    for gap, text in gaps:
        ns = max(ns + gap, highest - intake.OVERLAP_NS)
        highest = max(highest, ns)
        log.append(Entry(ns, text))
    kept: list[Entry] = []
    for cut in [*sorted(cuts), len(log)]:
        last = max([0, *(entry.ns for entry in kept)])
        recent = [entry for entry in kept if entry.ns >= since_ns(last)]
        reading = Intake(Stored(recent, last, 0))
        for entry in log[:cut]:
            if entry.ns >= since_ns(last):
                reading.take(stamped(entry))
        entries, dropped, _until = reading.hand_over()
        stored = len(entries) if cut == len(log) else data.draw(st.integers(0, len(entries)))
        kept += entries[:stored]
        assert dropped == 0
    assert kept == log


def test_pieces_of_a_long_line_are_known_again() -> None:
    log = [stamped(Entry(NOON, "begins")), b"goes on", stamped(Entry(NOON - 1, "late")), b"goes on"]
    first = Intake(Stored((), 0, 0))
    for line in log:
        first.take(line)
    entries, _dropped, _until = first.hand_over()
    again = Intake(Stored(entries, NOON, 0))
    for line in [b"goes on", *log]:
        again.take(line)
    assert ([entry.ns for entry in entries], again.hand_over()[0]) == ([NOON, NOON, NOON - 1, NOON - 1], [])


def test_equal_lines_at_one_time_are_counted() -> None:
    log = [Entry(NOON, "x")] * 5
    reading = Intake(Stored(log[:3], NOON, 0))
    for entry in log:
        reading.take(stamped(entry))
    assert reading.hand_over()[0] == log[3:]


def test_a_log_that_was_rotated_goes_on_after_what_is_stored() -> None:
    stored = [Entry(NOON + n, f"line {n}") for n in range(10)]
    reading = Intake(Stored(stored, NOON + 9, 0))
    for entry in [*stored[7:], Entry(NOON + 10, "line 10")]:
        reading.take(stamped(entry))
    assert reading.hand_over()[0] == [Entry(NOON + 10, "line 10")]


def test_lines_beyond_the_pace_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LINES_PER_SECOND", 2)
    reading = Intake(Stored((), 0, 0), intake.Pace(lines=3))
    for entry in [Entry(NOON + n, str(n)) for n in range(6)] + [Entry(NOON + SECOND, "later")]:
        reading.take(stamped(entry))
    entries, dropped, until = reading.hand_over()
    assert (dropped, until) == (3, NOON + 5)
    assert [entry.text for entry in entries if not entry.text.startswith("[Berth")] == [
        "0",
        "1",
        "2",
        "later",
    ]
    assert [entry.ns for entry in entries if entry.text.startswith("[Berth: 3 ")] == [NOON + 5]


def test_what_was_dropped_is_not_dropped_again() -> None:
    reading = Intake(Stored([Entry(NOON, "0")], NOON, NOON + 2))
    for n in range(4):
        reading.take(stamped(Entry(NOON + n, str(n))))
    assert reading.hand_over() == ([Entry(NOON + 3, "3")], 0, 0)


def test_a_container_may_always_be_read_late() -> None:
    """A collector that was away for a day reads a whole day at once: the lines' own times set the pace."""
    reading = Intake(Stored((), 0, 0))
    for second in range(2000):
        for n in range(3):
            reading.take(stamped(Entry(NOON + second * SECOND + n, "x" * 10_000)))
    entries, dropped, _until = reading.hand_over()
    assert (len(entries), dropped) == (6000, 0)
