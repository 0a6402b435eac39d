"""What keeps a run busy, from what was measured. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.idle.activity import Known, busy_figures, judge, quiet_since
from monitoring.idle.figures import Line, Quiet, intersect
from workspaces.state.inside import Inside, parse

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
MINUTE = timedelta(minutes=1)
ALLOWED = 60 * MINUTE
NOTHING = Inside(kernels=0, terminals=0, ssh=0, keep_alive_seconds=None)
LONG_QUIET = Known(asked_at=NOW, answered_at=NOW, answer=NOTHING, quiet_since=NOW - 90 * MINUTE)
intervals = st.lists(st.integers(0, 300), unique=True, max_size=20).map(
    lambda edges: list(zip(*[iter(sorted(edges))] * 2, strict=False))
)


def verdict(**values: Any) -> Any:
    facts: dict[str, Any] = {
        "begun_at": NOW - 120 * MINUTE, "figures": (), "figures_since": NOW - 100 * MINUTE, "known": LONG_QUIET,
        "kept_at": None, "allowed": ALLOWED,
    }  # fmt: skip
    return judge(NOW, **facts | values)


def test_it_is_idle_since_the_last_thing_that_kept_it_busy() -> None:
    assert verdict().since == NOW - 90 * MINUTE
    assert verdict(figures_since=NOW - 70 * MINUTE).since == NOW - 70 * MINUTE
    assert verdict(begun_at=NOW - 30 * MINUTE).since == NOW - 30 * MINUTE
    assert verdict(kept_at=NOW - 20 * MINUTE).since == NOW - 20 * MINUTE


def test_what_is_busy_or_unknown_is_not_idle() -> None:
    assert verdict(figures=("gpu",)).busy_by == ("gpu",)
    assert verdict(figures_since=None).since is None
    assert verdict(known=Known()).busy_by == ("inside_unknown",)
    old = Known(asked_at=NOW, answered_at=NOW - 20 * MINUTE, answer=NOTHING, quiet_since=NOW - 90 * MINUTE)
    assert verdict(known=old).busy_by == ("inside_unknown",)
    assert verdict(kept_at=NOW - MINUTE).busy_by == ("keep_alive",)


def test_it_settles_before_it_counts_as_idle() -> None:
    found = verdict(figures_since=NOW - 2 * MINUTE)
    assert (found.since, found.busy_by) == (None, ())


def test_an_answer_after_a_time_in_which_nobody_asked_begins_anew() -> None:
    later = NOW + 30 * MINUTE
    assert LONG_QUIET.heard(NOW + 5 * MINUTE, NOTHING, ALLOWED).quiet_since == LONG_QUIET.quiet_since
    assert LONG_QUIET.heard(later, NOTHING, ALLOWED).quiet_since == later
    missed = LONG_QUIET.heard(NOW + 5 * MINUTE, None, ALLOWED)
    assert (missed.answered_at, missed.quiet_since) == (NOW, LONG_QUIET.quiet_since)


def test_the_age_of_a_file_that_is_not_touched_again_stays_the_same_touch() -> None:
    first = LONG_QUIET.heard(NOW, Inside(0, 0, 0, 600), ALLOWED)
    again = first.heard(NOW + 5 * MINUTE, Inside(0, 0, 0, 901), ALLOWED)
    assert again.kept_at == first.kept_at == NOW - 10 * MINUTE
    assert first.heard(NOW + 5 * MINUTE, Inside(0, 0, 0, 3), ALLOWED).kept_at != first.kept_at


def test_figures_say_what_is_busy_and_what_is_not_known() -> None:
    quiet = [(SECONDS - 3600, SECONDS)]
    assert busy_figures(Quiet(Line(quiet), Line(quiet)), SECONDS) == []
    assert busy_figures(Quiet(Line(quiet), Line([], is_busy=True)), SECONDS) == ["gpu"]
    assert busy_figures(Quiet(Line(), Line(quiet)), SECONDS) == ["cpu_unknown"]
    assert busy_figures(Quiet(Line([(0, SECONDS - 60)]), None), SECONDS) == ["cpu_unknown"]
    assert quiet_since(Quiet(Line(quiet), Line([(SECONDS - 600, SECONDS)])), SECONDS) == NOW - 10 * MINUTE


@given(intervals, intervals)
def test_what_lies_in_both_is_what_each_second_says(ones: Any, others: Any) -> None:
    def seconds(times: Any) -> set[int]:
        return {second for begin, end in times for second in range(begin, end)}

    found = intersect(ones, others)
    assert seconds(found) == seconds(ones) & seconds(others)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{", b'{"terminals": 1, "ssh": 0}', b'{"kernels": -1, "terminals": 0, "ssh": 0}',
        b'{"kernels": true, "terminals": 0, "ssh": 0}', b'{"kernels": 0, "terminals": "0", "ssh": 0}',
        b'{"kernels": 0, "terminals": 0, "ssh": 0, "keep_alive_seconds": 1e300}', b"\xff",
        b'{"kernels": 0, "terminals": 0, "ssh": 99999999999999999999}',
    ],
)  # fmt: skip
def test_an_answer_that_does_not_hold_is_none(body: bytes) -> None:
    assert parse(body, of_jupyter=True) is None


@given(st.binary(max_size=200))
def test_any_answer_is_read_without_a_fault(body: bytes) -> None:
    parse(body, of_jupyter=True)
    parse(body, of_jupyter=False)
